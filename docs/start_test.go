// SPDX-License-Identifier: Apache-2.0

//go:build unix

package docs

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"trueup.dev/internal/testkit/usermodule"
	"trueup.dev/sandbox"
)

const startPage = "start.md"

// startVariable is set to run TestStart. A flag of the package would keep go test from caching the results of all tests
// beside it; a variable that is read is a part of the key of the cache.
const startVariable = "TRUEUP_TEST_START"

// outputTimeout is the time in which a command that keeps running must write the awaited text.
const outputTimeout = 2 * time.Minute

// pageBlock is a block between fences, and the words after the first fence.
type pageBlock struct {
	line           int
	language, name string
	text           string
}

// readBlocks returns the blocks of a page.
func readBlocks(page string) []pageBlock {
	var blocks []pageBlock
	var block *pageBlock
	line := 0
	for l := range strings.Lines(page) {
		line++
		fence, isFence := strings.CutPrefix(strings.TrimSuffix(l, "\n"), "```")
		switch {
		case isFence && block == nil:
			block = &pageBlock{line: line}
			block.language, block.name, _ = strings.Cut(fence, " ")
		case isFence:
			blocks = append(blocks, *block)
			block = nil
		case block != nil:
			block.text += l
		}
	}
	return blocks
}

// All files of the page are written, and all of its commands are run, from top to bottom, in a module outside of this
// repository. The words after a fence define the type of a block:
//
//	```go api/v1/server.go     a file
//	```sh                      commands that end
//	```sh until "text"         a command that keeps running; the page goes on when it has written the text
//	```text                    lines that the command before it writes; … stands for anything
func TestStart(t *testing.T) {
	if os.Getenv(startVariable) == "" {
		t.Skip("takes a minute: `make start` runs it, and so does `make test`, with " + startVariable + "=1")
	}
	if _, err := sandbox.Build(t.Context(), sandbox.Options{}); err != nil {
		t.Fatal(err)
	}
	m := usermodule.New(t, "..")
	r := &pageRun{t: t, module: m}
	commands := 0
	for _, block := range readBlocks(readFile(t, startPage)) {
		switch {
		case block.language == "sh":
			commands += r.run(block)
		case block.language == "text":
			r.compare(block)
		case path.Ext(block.name) == "."+block.language:
			m.Write(t, block.name, block.text)
		default:
			t.Errorf("%s:%d: a block %q without the name of a file", startPage, block.line, block.language)
		}
	}
	r.interrupt()
	if commands < 10 {
		t.Errorf("only %d commands were run", commands)
	}
	if goMod := m.Read(t, "go.mod"); strings.Contains(goMod, "k8s.io/kubernetes ") {
		t.Errorf("the module depends on Kubernetes:\n%s", goMod)
	}
}

// pageRun runs the commands of a page.
type pageRun struct {
	t       *testing.T
	module  *usermodule.Module
	output  func() string // of the last command
	running []*exec.Cmd
}

// run runs the commands of a block and returns their number.
func (r *pageRun) run(block pageBlock) int {
	r.t.Helper()
	if text, ok := strings.CutPrefix(block.name, "until "); ok {
		r.start(block, strings.Trim(text, `"`))
		return 1
	}
	n := 0
	for line := range strings.Lines(block.text) {
		line = strings.TrimSpace(line)
		n++
		began := time.Now()
		cmd := r.module.Command(r.t, "sh", "-c", line)
		out, err := cmd.CombinedOutput()
		if err != nil {
			r.t.Fatalf("%s:%d: %s: %v\n%s", startPage, block.line+n, line, err, out)
		}
		r.t.Logf("%6.1f s  %s", time.Since(began).Seconds(), line)
		r.output = func() string { return string(out) }
		if strings.HasPrefix(line, "go mod init") {
			r.module.UseCheckout(r.t)
		}
	}
	return n
}

// start starts a command that keeps running, and returns when it has written the text.
func (r *pageRun) start(block pageBlock, text string) {
	r.t.Helper()
	line := strings.TrimSpace(block.text)
	began := time.Now()
	cmd := r.module.Command(r.t, "sh", "-c", "exec "+withVariables(line))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C in a terminal reaches the go command and what it runs
	out := &awaitedOutput{text: text, found: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	r.t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
		select {
		case <-ended:
		case <-time.After(outputTimeout):
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			r.t.Errorf("%s:%d: %s: does not end when it is interrupted\n%s", startPage, block.line, line, out)
		}
	})
	r.running = append(r.running, cmd)
	r.output = out.String
	select {
	case <-out.found:
		r.t.Logf("%6.1f s  %s", time.Since(began).Seconds(), line)
	case err := <-ended:
		ended <- err
		r.t.Fatalf("%s:%d: %s: ended (%v) without %q\n%s", startPage, block.line, line, err, text, out)
	case <-time.After(outputTimeout):
		r.t.Fatalf("%s:%d: %s: no %q in its output\n%s", startPage, block.line, line, text, out)
	}
}

// withVariables puts env before a command that begins with variables, so that it can replace the shell.
func withVariables(line string) string {
	if regexp.MustCompile(`^[A-Z_]+=`).MatchString(line) {
		return "env " + line
	}
	return line
}

// interrupt sends the signal of Ctrl-C to the commands that keep running, the last one first.
func (r *pageRun) interrupt() {
	for i := len(r.running) - 1; i >= 0; i-- {
		if err := syscall.Kill(-r.running[i].Process.Pid, syscall.SIGINT); err != nil && !errors.Is(err, os.ErrProcessDone) &&
			!errors.Is(err, syscall.ESRCH) {
			r.t.Errorf("interrupt %v: %v", r.running[i].Args, err)
		}
	}
}

// compare reports lines of a block that the last command did not write.
func (r *pageRun) compare(block pageBlock) {
	r.t.Helper()
	out := r.output()
	for line := range strings.Lines(block.text) {
		line = strings.TrimSpace(line)
		pattern := strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*")
		if !regexp.MustCompile(`(?m)^\s*` + pattern + `\s*$`).MatchString(out) {
			r.t.Errorf("%s:%d: the command has not written: %s\n%s", startPage, block.line, line, out)
		}
	}
}

// awaitedOutput collects the output of a command, and closes a channel when it contains a text.
type awaitedOutput struct {
	mu    sync.Mutex
	all   bytes.Buffer
	text  string
	found chan struct{}
}

func (o *awaitedOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := strings.Contains(o.all.String(), o.text)
	o.all.Write(p)
	if !before && strings.Contains(o.all.String(), o.text) {
		close(o.found)
	}
	return len(p), nil
}

func (o *awaitedOutput) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}
