// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLineWriter(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	cases := map[string]struct {
		writes, want []string
	}{
		"lines in one write":           {[]string{"a\nb\n"}, []string{"a", "b", ""}},
		"a line in several writes":     {[]string{"a", "b", "c\nd"}, []string{"abc", "d"}},
		"carriage returns are removed": {[]string{"a\r\nb\r\n"}, []string{"a", "b", ""}},
		"the length of a line is limited": {
			[]string{long + "y", "z\n" + long + "\nnext\n"},
			[]string{long, long, "next", ""},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			w := &lineWriter{each: func(line string) { got = append(got, line) }}
			for _, s := range c.writes {
				if n, err := w.Write([]byte(s)); n != len(s) || err != nil {
					t.Fatalf("Write returned %d, %v", n, err)
				}
			}
			w.flush()
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTailKeepsTheLastLines(t *testing.T) {
	var output tail
	var want strings.Builder
	for i := range tailLines + 5 {
		output.add(fmt.Sprint("line ", i))
		output.add("  ")
		if i >= 5 {
			fmt.Fprintf(&want, "\n\tline %d", i)
		}
	}
	if diff := cmp.Diff(want.String(), output.String()); diff != "" {
		t.Errorf("tail (-want +got):\n%s", diff)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken") }

func TestAlwaysWriterGoesOn(t *testing.T) {
	if n, err := (alwaysWriter{brokenWriter{}}).Write([]byte("abc")); n != 3 || err != nil {
		t.Errorf("Write returned %d, %v", n, err)
	}
}
