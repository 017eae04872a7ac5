package config

import "strings"

// nearest gives the known key that was probably meant, or "". A third of the letters may be wrong:
// beyond that the guess is more often noise than help.
func nearest(key string, known []string) string {
	best, least := "", max(1, len(key)/3)+1
	if len(key) > 64 {
		return ""
	}
	for _, k := range known {
		if d := distance(fold(key), fold(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// fold makes walFsync, wal-fsync and wal_fsync one.
func fold(s string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(s))
}

// distance counts the letters to insert, delete, replace or swap with their neighbour (optimal string
// alignment), in bytes.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
