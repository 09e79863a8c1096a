// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// syncBuffer is a buffer that the display's goroutine and the test can use concurrently.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// build simulates a build that takes 25.55 seconds. Nothing happens at the time of an update of the display.
func build(p *progress) {
	state := buildState{display: p}
	time.Sleep(550 * time.Millisecond)
	state.line("go: downloading k8s.io/api v0.37.1")
	time.Sleep(2 * time.Second)
	state.line("go: downloading k8s.io/client-go v0.37.1")
	time.Sleep(9 * time.Second)
	state.begin(newWorkload("internal/goarch 2\n\nk8s.io/api/core/v1 5\n" + controlPlaneMain + " 1\n"))
	state.line("internal/goarch")
	time.Sleep(10 * time.Second)
	state.line("k8s.io/api/core/v1")
	state.line(controlPlaneMain)
	time.Sleep(4 * time.Second)
	p.end("built /cache/trueup-controlplane")
}

func TestProgressWithoutTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out syncBuffer
		build(newProgress(&out, nil, "determining what to build", false))
		want := `trueup: determining what to build
trueup: downloading modules: 1 so far, now k8s.io/api v0.37.1
trueup: downloading modules: 2 so far, now k8s.io/client-go v0.37.1, 10s
trueup: compiling 3 packages, 11s
trueup: compiling package 1 of 3, 20s
trueup: linking the binary of 3 packages, 21s
trueup: built /cache/trueup-controlplane, 25s
`
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("progress (-want +got):\n%s", diff)
		}
	})
}

func TestProgressOnTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out syncBuffer
		p := newProgress(&out, func() int { return 60 }, "determining what to build", false)
		build(p)
		// Each entry is one update of the line. Updates that only change the time are ignored.
		var got []string
		for _, shown := range strings.Split(out.String(), "\r") {
			text := strings.TrimRight(shown, " ")
			if n := len(text); n > 59 && !strings.HasSuffix(text, "\n") {
				t.Errorf("%d columns used of 60: %q", n, text)
			}
			if len(got) == 0 || withoutTime(got[len(got)-1]) != withoutTime(text) {
				got = append(got, text)
			}
		}
		want := []string{
			"",
			"trueup: determining what to build",
			"trueup: downloading modules: 1 so far, now k8s.io/api v0.37",
			"trueup: downloading modules: 2 so far, now k8s.io/client-go",
			"trueup: compiling 3 packages, 11s",
			"trueup: compiling package 1 of 3, 11s",
			"trueup: linking the binary of 3 packages, 21s",
			"",
			"trueup: built /cache/trueup-controlplane, 25s\n",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("lines shown (-want +got):\n%s", diff)
		}
		if strings.Contains(out.String(), "\x1b") {
			t.Error("an escape code was written")
		}
		if got := screen(out.String()); got != "trueup: built /cache/trueup-controlplane, 25s" {
			t.Errorf("the terminal finally shows %q", got)
		}
	})
}

var elapsedTime = regexp.MustCompile(`, \d+s(, a few second)?$`)

func withoutTime(line string) string { return elapsedTime.ReplaceAllString(line, "") }

// screen returns the text that a terminal shows after out: a carriage return moves to the start of the line, and
// characters overwrite.
func screen(out string) string {
	var line []byte
	column := 0
	for _, c := range []byte(strings.TrimSuffix(out, "\n")) {
		if c == '\r' {
			column = 0
			continue
		}
		if column == len(line) {
			line = append(line, c)
		} else {
			line[column] = c
		}
		column++
	}
	return strings.TrimRight(string(line), " ")
}

func TestQuietProgress(t *testing.T) {
	cases := map[string]struct {
		lasts time.Duration
		want  string
	}{
		"no output for a short activity": {9 * time.Second, ""},
		"output for a long activity":     {21 * time.Second, "trueup: starting, 10s\ntrueup: starting, 20s\n"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out syncBuffer
				p := newProgress(&out, nil, "starting", true)
				time.Sleep(c.lasts)
				p.end("")
				if diff := cmp.Diff(c.want, out.String()); diff != "" {
					t.Errorf("progress (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestTerminalWidthOfOtherThings(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	defer writer.Close()
	if terminalWidth(writer) != nil {
		t.Error("a pipe is treated as a terminal")
	}
	if terminalWidth(&bytes.Buffer{}) != nil {
		t.Error("a buffer is treated as a terminal")
	}
}

func TestEstimate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var list strings.Builder
		for i := range 2000 {
			fmt.Fprintf(&list, "package/%d %d\n", i, 9)
		}
		w := newWorkload(list.String())
		if expected := w.expected(); !regexp.MustCompile(`^ \(about \d+ to \d+ min on \d+ processors?\)$`).MatchString(expected) {
			t.Errorf("before the first package: %q", expected)
		}
		got := map[int]string{}
		for i := range 2000 {
			time.Sleep(100 * time.Millisecond)
			left := w.compiling(fmt.Sprint("package/", i))
			switch {
			case left == 0:
				got[i] = ""
			case i%500 == 499:
				got[i] = roundly(left)
			}
		}
		for i := range got {
			if got[i] == "" && i > 200 {
				t.Errorf("no estimate at package %d", i)
			}
			if got[i] == "" {
				delete(got, i)
			}
		}
		want := map[int]string{
			499: "about 3 min left", 999: "about 2 min left", 1499: "about 70 s left", 1999: "about 20 s left",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	if expected := newWorkload("a 1\nb 2\n").expected(); expected != "" {
		t.Errorf("for a short build: %q", expected)
	}
}

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
