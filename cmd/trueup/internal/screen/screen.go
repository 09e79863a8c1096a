// SPDX-License-Identifier: Apache-2.0

// Package screen prints the progress of a command for the user: steps, their progress and their results. It writes
// whole lines only, so the output is readable on a terminal, in a pipe and in a log. Colors are used on terminals only.
//
//	s := screen.New(os.Stdout)
//	s.Step("Start the sandbox")
//	s.Done("Kubernetes v1.37.2 is up")
package screen

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// Style is the style of text on a terminal.
type Style string

// The available styles.
const (
	Plain  Style = ""
	Bold   Style = "1"
	Faint  Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
	Cyan   Style = "36"
)

// Screen writes lines. It is safe for concurrent use.
type Screen struct {
	color bool
	now   func() time.Time

	mu    sync.Mutex
	out   io.Writer
	start time.Time // of the current step
	steps int
}

// New returns a Screen that writes to out. It uses colors if out is a terminal that supports them and the environment
// variable NO_COLOR is not set.
func New(out io.Writer) *Screen {
	file, ok := out.(*os.File)
	color := ok && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return &Screen{out: out, color: color, now: time.Now, start: time.Now()}
}

// Paint returns the text in a style, or unchanged without colors.
func (s *Screen) Paint(style Style, text string) string {
	if !s.color || style == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}

// Step starts a step: it prints a heading and resets the elapsed time.
func (s *Screen) Step(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.start = s.now()
	s.steps++
	if s.steps > 1 {
		fmt.Fprintln(s.out)
	}
	fmt.Fprintf(s.out, "%s %s\n", s.Paint(Cyan, "▸"), s.Paint(Bold, fmt.Sprintf(format, args...)))
}

// Progress prints the progress of a step with the elapsed time.
func (s *Screen) Progress(format string, args ...any) {
	s.line(s.Paint(Faint, "·"), fmt.Sprintf(format, args...))
}

// Done prints the result of a step with the elapsed time.
func (s *Screen) Done(format string, args ...any) {
	s.line(s.Paint(Green, "✓"), fmt.Sprintf(format, args...))
}

// Skipped prints what was skipped and why.
func (s *Screen) Skipped(format string, args ...any) {
	s.line(s.Paint(Yellow, "-"), "skipped: "+fmt.Sprintf(format, args...))
}

// Print prints text and adds a line break if it does not end with one.
func (s *Screen) Print(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	fmt.Fprint(s.out, text)
}

func (s *Screen) line(mark, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	elapsed := fmt.Sprintf("%7.2fs", s.now().Sub(s.start).Seconds())
	fmt.Fprintf(s.out, "%s %s %s\n", s.Paint(Faint, elapsed), mark, text)
}

// Quote quotes a text for a POSIX shell if it must be.
func Quote(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+=:,@%", r)
	}
	if text != "" && strings.TrimFunc(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
