package fitness

import (
	"fmt"
	"time"
)

// Duration is a time.Duration that people write and read as text ("3s",
// "250ms") in YAML and JSON. A bare number is an error: it has no unit.
type Duration time.Duration

// MarshalText writes the duration the way Go prints it, such as "5m0s".
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads "3s", "250ms", "1h30m". Negative durations are refused:
// nothing in Suffrage is negative.
func (d *Duration) UnmarshalText(b []byte) error {
	if len(b) > 64 {
		return fmt.Errorf("a duration is at most 64 characters long")
	}
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is not a duration; write a number and a unit, such as 250ms, 3s or 5m", b)
	}
	if v < 0 {
		return fmt.Errorf("%q is negative", b)
	}
	*d = Duration(v)
	return nil
}

// Std is the duration as the standard library's.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// Seconds is the duration in seconds.
func (d Duration) Seconds() float64 { return time.Duration(d).Seconds() }

func (d Duration) String() string { return time.Duration(d).String() }
