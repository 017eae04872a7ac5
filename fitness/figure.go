package fitness

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Figure is a number that may be infinite: the p99 of a window in which two
// pings were lost, or the upper end of a histogram's last bucket. JSON has no
// infinity, so it is written as the string "inf".
type Figure float64

// Inf is the figure that is ordered after every number.
var Inf = Figure(math.Inf(1))

// MarshalJSON writes a number, or "inf".
func (f Figure) MarshalJSON() ([]byte, error) {
	if math.IsInf(float64(f), 1) {
		return []byte(`"inf"`), nil
	}
	if math.IsNaN(float64(f)) || math.IsInf(float64(f), -1) {
		return nil, fmt.Errorf("fitness: figure %v cannot be written", float64(f))
	}
	return strconv.AppendFloat(nil, float64(f), 'g', -1, 64), nil
}

// UnmarshalJSON reads a number, or "inf".
func (f *Figure) UnmarshalJSON(b []byte) error {
	if string(b) == `"inf"` {
		*f = Inf
		return nil
	}
	// Reports read millions of them, nearly all plain numbers.
	if len(b) > 0 && b[0] >= '0' && b[0] <= '9' {
		if v, err := strconv.ParseFloat(string(b), 64); err == nil {
			*f = Figure(v)
			return nil
		}
	}
	var v *float64 // a pointer, since null is not zero
	if err := json.Unmarshal(b, &v); err != nil || v == nil {
		return fmt.Errorf("fitness: figure %.40s is neither a number nor \"inf\"", b)
	}
	*f = Figure(*v)
	return nil
}

// Text is the figure with its unit as a person reads it: "151 ms", "3.2 GiB".
func (f Figure) Text(unit string) string {
	v := float64(f)
	switch unit {
	case "s":
		if math.IsInf(v, 1) {
			return "lost"
		}
		return seconds(v)
	case "B":
		if v >= 1<<30 {
			return fmt.Sprintf("%.1f GiB", v/(1<<30))
		}
		return fmt.Sprintf("%.0f MiB", v/(1<<20))
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// seconds keeps three digits: more would claim a precision that no probe has.
func seconds(v float64) string {
	switch a := math.Abs(v); {
	case a >= 10:
		return fmt.Sprintf("%.0f s", v)
	case a >= 1:
		return fmt.Sprintf("%.2f s", v)
	case a >= 0.1:
		return fmt.Sprintf("%.0f ms", v*1e3)
	case a >= 0.01:
		return fmt.Sprintf("%.1f ms", v*1e3)
	}
	return fmt.Sprintf("%.2f ms", v*1e3)
}
