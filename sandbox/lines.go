// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

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
