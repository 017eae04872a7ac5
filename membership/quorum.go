package membership

// Quorum is the number of voters that must agree: a majority of all voters,
// whether or not they have started. Learners never count.
func Quorum(voters int) int { return voters/2 + 1 }

// Tolerance is how many more voters may fail before quorum is lost: those that
// can be counted on less the quorum, never below zero.
func Tolerance(voters, good int) int { return max(0, good-Quorum(voters)) }
