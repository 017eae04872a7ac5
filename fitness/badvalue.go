package fitness

import "fmt"

// BadValue is a word in a recorded file that this version does not know.
type BadValue struct{ What, Found, Allowed string }

func (e *BadValue) Error() string {
	return fmt.Sprintf("fitness: %s %.40q is not known; allowed: %s", e.What, e.Found, e.Allowed)
}
