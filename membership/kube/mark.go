package kube

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"suffrage/membership"
)

// Annotations on a Node that the owner writes. Each has the value true or false; the reason is beside
// it, under the same name with "-reason" behind.
const (
	Eligible = "suffrage.io/eligible"
	Pinned   = "suffrage.io/pinned"
	reason   = "-reason"
)

// maxReason bounds a reason, in bytes.
const maxReason = 500

func markOf(node meta.PartialObjectMetadata) (m membership.Mark, err error) {
	if m.Eligible, err = say(node, Eligible); err != nil {
		return membership.Mark{}, err
	}
	m.Pinned, err = say(node, Pinned)
	if err != nil {
		return membership.Mark{}, err
	}
	return m, nil
}

// say is what one annotation says, nil where there is none.
func say(node meta.PartialObjectMetadata, name string) (*membership.Say, error) {
	value, ok := node.Annotations[name]
	if !ok {
		return nil, nil
	}
	if value != "true" && value != "false" {
		return nil, fmt.Errorf("kube: Node %s: annotation %s is %s; true or false: set it again with 'kubectl annotate --overwrite node %[1]s %[2]s=…', or remove it with '%[2]s-'",
			node.Name, name, strconv.Quote(cut(value, 50)))
	}
	s := &membership.Say{Value: value == "true", Reason: line(node.Annotations[name+reason])}
	s.By, s.At = who(node, name)
	return s, nil
}

// who is which program wrote the annotation, and when, where the API server kept
// that; people have no names here.
func who(node meta.PartialObjectMetadata, name string) (by string, at time.Time) {
	for _, f := range node.ManagedFields {
		if f.FieldsV1 != nil && strings.Contains(f.FieldsV1.GetRawString(), `"f:`+name+`":`) && f.Time != nil {
			return line(f.Manager) + " on its Node", f.Time.UTC()
		}
	}
	return "its Node", time.Time{}
}

// line makes a text one line that is not too long.
func line(s string) string { return cut(printable(s), maxReason) }

// printable makes a text one line of printable characters.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

// cut keeps whole characters.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}
