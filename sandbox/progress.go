// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
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
	liveInterval  = 100 * time.Millisecond // between two looks at whether the live line has changed
	plainInterval = 10 * time.Second       // between two lines where no line can change in place
)

// progress shows one activity to people. On a terminal it is a line that changes in place (by carriage return and blanks, so that no terminal is too
// simple), elsewhere a line at each change of phase and one every plainInterval. Its methods are safe for concurrent use.
type progress struct {
	out   io.Writer
	width func() int // of the terminal; nil where lines cannot change in place

	mu    sync.Mutex
	began time.Time
	text  string
	shown string // what the live line shows now

	stop    chan struct{}
	stopped chan struct{}
}

// startProgress shows text, and how long it has been going on, until end. A quiet activity says nothing in its first plainInterval where lines cannot change
// in place.
func startProgress(out io.Writer, text string, quiet bool) *progress {
	return newProgress(out, terminalWidth(out), text, quiet)
}

func newProgress(out io.Writer, width func() int, text string, quiet bool) *progress {
	p := &progress{out: out, width: width, began: time.Now(), text: text, stop: make(chan struct{}), stopped: make(chan struct{})}
	if width != nil || !quiet {
		p.show()
	}
	go p.run()
	return p
}

// terminalWidth returns how to find the width of out, or nil if out is no terminal with lines that can change in place.
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

// phase changes the text and shows it at once.
func (p *progress) phase(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = fmt.Sprintf(format, args...)
	p.show()
}

// update changes the text; it is shown when it is time to.
func (p *progress) update(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = fmt.Sprintf(format, args...)
}

// end stops the display and, if final is not empty, leaves it as the last line, with the elapsed time.
func (p *progress) end(final string) {
	close(p.stop)
	<-p.stopped
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown != "" {
		say(p.out, "\r%s\r", strings.Repeat(" ", utf8.RuneCountInString(p.shown)))
	}
	if final != "" {
		say(p.out, "%s\n", p.line(final))
	}
}

func (p *progress) line(text string) string {
	elapsed := time.Since(p.began)
	if elapsed < time.Second {
		return "trueup: " + text
	}
	return fmt.Sprintf("trueup: %s, %s", text, elapsed.Truncate(time.Second))
}

// show writes the line as it is now; p.mu is held, or nobody else knows p yet.
func (p *progress) show() {
	line := p.line(p.text)
	if p.width == nil {
		say(p.out, "%s\n", line)
		return
	}
	// The last column stays free: a full line wraps on some terminals, and a wrapped line cannot be overwritten.
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

// say tells people something. That nobody can read it is no reason to stop what it is about.
func say(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }
