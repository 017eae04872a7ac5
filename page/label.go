package page

import (
	"cmp"
	"math"
	"slices"

	"suffrage/fitness"
)

// How wide a letter is at most, in the picture's units: fonts differ, and a label that is
// thought to be too narrow covers another one.
const (
	labelLetter = 7.6
	nameLetter  = 8.4 // names are bold
	halfLine    = 8.0 // of a line of text
)

// box is a piece of the picture: its middle, and half of what it takes up.
type box struct{ x, y, halfX, halfY float64 }

// wordAt is the box of a word that stands at a place.
func wordAt(x, y float64, word string, letter float64) box {
	return box{x, y - 4, float64(len([]rune(word))) * letter / 2, halfLine}
}

// within is where its middle has to be so that it is not cut off at a side.
func (b box) within(width float64) float64 {
	return math.Min(math.Max(b.x, b.halfX+2), math.Max(width-b.halfX-2, width/2))
}

func (b box) covers(o box) bool {
	return math.Abs(b.x-o.x) < b.halfX+o.halfX && math.Abs(b.y-o.y) < b.halfY+o.halfY
}

// along are the places on a line that are tried for its label, the best first, as parts
// of it.
var along = []float64{0.5, 0.42, 0.58, 0.35, 0.65, 0.28, 0.72, 0.22, 0.78}

// links draws them, and gives labels to as many as there is room for: first to those that
// are past their limits, then to those between voters.
func (d *drawing) links(links []Link) {
	for _, l := range links {
		a, b := d.at[l.A], d.at[l.B]
		d.Lines = append(d.Lines, Line{Link: l, X1: a.X, Y1: a.Y, X2: b.X, Y2: b.Y})
	}
	order := make([]*Line, len(d.Lines))
	for i := range d.Lines {
		order[i] = &d.Lines[i]
	}
	slices.SortStableFunc(order, func(a, b *Line) int {
		return cmp.Or(lastFalse(a.Band == fitness.Over, b.Band == fitness.Over), lastFalse(a.Voters, b.Voters))
	})
	for _, l := range order {
		if !d.label(l, markOfBand(l.Band)+l.Text(), l.P99 != nil) && l.Band == fitness.Over {
			d.label(l, "✕", true)
		}
	}
	for _, l := range d.Lines {
		if l.P99 != nil && (l.Label == "" || l.Label == "✕") {
			d.Rest = append(d.Rest, l.Link)
		}
	}
}

func lastFalse(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// label puts one on its line where it covers nothing. As figures change it is not to jump
// about: it takes up what the longest one does. The mark of a link that is past its limit
// is there in any case.
func (d *drawing) label(l *Line, text string, known bool) bool {
	if !known {
		return false
	}
	const longest = "✕ 22.2 ms"
	room := longest
	switch {
	case text == "✕":
		room = text
	case l.Band == fitness.Under:
		room = longest[len("✕ "):]
	}
	put := func(t float64) box {
		return wordAt(l.X1+t*(l.X2-l.X1), l.Y1+t*(l.Y2-l.Y1)+4, room, labelLetter)
	}
	i := slices.IndexFunc(along, func(t float64) bool { return d.free(put(t)) })
	if i < 0 && text != "✕" {
		return false
	}
	at := put(along[max(i, 0)])
	d.taken = append(d.taken, at)
	l.Label, l.LabelX, l.LabelY = text, round(at.x), round(at.y+4)
	return true
}

func (d *drawing) free(b box) bool {
	return b.x-b.halfX >= 0 && b.x+b.halfX <= float64(d.Width) && !slices.ContainsFunc(d.taken, b.covers)
}

// markOfBand is the shape before a p99 that is not within its limit.
func markOfBand(b fitness.Band) string {
	if b == fitness.Under {
		return ""
	}
	return glyph(b.String()) + " "
}
