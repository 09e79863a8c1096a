// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

const (
	liveInterval  = 100 * time.Millisecond // interval between updates of the live line
	plainInterval = 10 * time.Second       // interval between lines if the line cannot change in place
)

// progress shows an activity to the user. On a terminal it is a line that changes in place, with only carriage returns
// and blanks, so that it works on every terminal. Otherwise it prints a line at each change of phase and one every
// plainInterval. Its methods are safe for concurrent use.
type progress struct {
	out   io.Writer
	width func() int // width of the terminal; nil if lines cannot change in place

	mu       sync.Mutex
	began    time.Time
	text     string
	expected time.Time // expected end of the activity; zero if unknown
	shown    string    // current text of the live line

	stop    chan struct{}
	stopped chan struct{}
}

// startProgress shows text and the elapsed time until end is called. If lines cannot change in place, a quiet activity
// prints nothing in its first plainInterval.
func startProgress(out io.Writer, text string, quiet bool) *progress {
	return newProgress(out, terminalWidth(out), text, quiet)
}

func newProgress(out io.Writer, width func() int, text string, quiet bool) *progress {
	p := &progress{
		out:     out,
		width:   width,
		began:   time.Now(),
		text:    text,
		stop:    make(chan struct{}),
		stopped: make(chan struct{}),
	}
	if width != nil || !quiet {
		p.show()
	}
	go p.run()
	return p
}

// terminalWidth returns a function that returns the width of out, or nil if out is not a terminal with lines that can
// change in place.
func terminalWidth(out io.Writer) func() int {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	if name := os.Getenv("TERM"); name == "dumb" || name == "" && runtime.GOOS != "windows" {
		return nil
	}
	return func() int {
		width, _, err := term.GetSize(int(file.Fd()))
		if err != nil || width <= 0 {
			return 80
		}
		return width
	}
}

func (p *progress) run() {
	defer close(p.stopped)
	interval := plainInterval
	if p.width != nil {
		interval = liveInterval
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-ticker.C:
			p.mu.Lock()
			p.show()
			p.mu.Unlock()
		}
	}
}

// phase changes the text, without an expected time, and shows it immediately.
func (p *progress) phase(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text, p.expected = fmt.Sprintf(format, args...), time.Time{}
	p.show()
}

// update changes the text. It is shown at the next interval.
func (p *progress) update(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = fmt.Sprintf(format, args...)
}

// expect sets the time that the activity still takes; 0 if it is unknown. It is shown at the next interval.
func (p *progress) expect(left time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = time.Time{}
	if left > 0 {
		p.expected = time.Now().Add(left)
	}
}

// end stops the display. If final is not empty, it prints final as the last line, with the elapsed time.
func (p *progress) end(final string) {
	close(p.stop)
	<-p.stopped
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown != "" {
		say(p.out, "\r%s\r", strings.Repeat(" ", utf8.RuneCountInString(p.shown)))
	}
	if final != "" {
		p.expected = time.Time{}
		say(p.out, "%s\n", p.line(final))
	}
}

func (p *progress) line(text string) string {
	line := "trueup: " + text
	if elapsed := time.Since(p.began); elapsed >= time.Second {
		line += ", " + elapsed.Truncate(time.Second).String()
	}
	if !p.expected.IsZero() {
		line += ", " + roundly(time.Until(p.expected))
	}
	return line
}

// show writes the current line. The caller must hold p.mu, or p must not be shared yet.
func (p *progress) show() {
	line := p.line(p.text)
	if p.width == nil {
		say(p.out, "%s\n", line)
		return
	}
	// The last column stays free: some terminals wrap a full line, and a wrapped line cannot be overwritten.
	if runes, width := []rune(line), p.width()-1; len(runes) > width {
		line = string(runes[:max(width, 0)])
	}
	if line == p.shown {
		return
	}
	blanks := max(0, utf8.RuneCountInString(p.shown)-utf8.RuneCountInString(line))
	say(p.out, "\r%s%s", line, strings.Repeat(" ", blanks))
	p.shown = line
}

// say prints a message to the user. Errors are ignored, because the activity must continue without output.
func say(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }

const (
	maxLine   = 2000 // maximum number of bytes kept of a line
	tailLines = 20   // number of lines in an error message
)

// lineWriter calls each with every complete line written to it, without the newline. Bytes of a line beyond maxLine are
// dropped.
type lineWriter struct {
	each func(line string)
	line []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		part := p
		if i >= 0 {
			part = p[:i]
		}
		w.line = append(w.line, part[:min(len(part), maxLine-len(w.line))]...)
		if i < 0 {
			return n, nil
		}
		w.flush()
		p = p[i+1:]
	}
}

// flush passes on the last line if it is incomplete.
func (w *lineWriter) flush() {
	line := strings.TrimSuffix(string(w.line), "\r")
	w.line = w.line[:0]
	w.each(line)
}

// tail keeps the last lines that were added. It is safe for concurrent use.
type tail struct {
	mu    sync.Mutex
	lines []string
}

func (t *tail) add(line string) {
	if strings.TrimSpace(line) == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) == tailLines {
		t.lines = append(t.lines[:0], t.lines[1:]...)
	}
	t.lines = append(t.lines, line)
}

// String returns the indented lines after a line break, as the end of an error message. It returns "" if there are
// none.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	for _, line := range t.lines {
		b.WriteString("\n\t" + line)
	}
	return b.String()
}

// alwaysWriter ignores the errors of w: the goroutine that reads a child's pipe must not end when the output cannot be
// written, or the child blocks on its next line.
type alwaysWriter struct{ w io.Writer }

func (a alwaysWriter) Write(p []byte) (int, error) {
	_, _ = a.w.Write(p)
	return len(p), nil
}
