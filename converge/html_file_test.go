// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// inChild is set in a test binary that a test has started.
const inChild = "CONVERGE_HTML_CHILD"

// TestChildOfHTMLFlag fails when it is started by [TestHTMLFlag].
func TestChildOfHTMLFlag(t *testing.T) {
	if os.Getenv(inChild) == "" {
		t.Skip("for TestHTMLFlag")
	}
	t.Run("sub", func(t *testing.T) { Run(t, keeping()) })
}

// TestHTMLFlag runs a test that fails, and checks the page that its output names.
func TestHTMLFlag(t *testing.T) {
	for _, c := range []struct {
		reason string
		flag   string
		more   []string
		want   string
	}{
		{"a file", "a.html", nil, "a.html"},
		{"a file in a new directory", "new/a.HTML", nil, "new/a.HTML"},
		{"a directory", "pages", nil, "pages/TestChildOfHTMLFlag/sub.html"},
		{"a directory with a slash", "pages/", nil, "pages/TestChildOfHTMLFlag/sub.html"},
		{"a replay", "a.html", []string{"-converge.replay=v1:1:"}, "a.html"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			dir := t.TempDir()
			child := exec.CommandContext(
				t.Context(), os.Args[0], append(c.more, "-test.run=^TestChildOfHTMLFlag$", "-converge.html="+c.flag)...,
			)
			child.Dir, child.Env = dir, append(os.Environ(), inChild+"=true")
			output, err := child.CombinedOutput()
			if err == nil {
				t.Fatalf("the test did not fail:\n%s", output)
			}
			file := filepath.Join(dir, c.want)
			page, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v\n%s", err, output)
			}
			parse(t, page)
			if !strings.Contains(string(page), "TestChildOfHTMLFlag/sub") {
				t.Error("the page is not that of the test")
			}
			if !strings.Contains(string(output), "page: "+file+"\n") {
				t.Errorf("the output does not name %s:\n%s", file, output)
			}
		})
	}
}

// TestPage_cannotBeWritten checks that a failure is reported even if its page cannot be written.
func TestPage_cannotBeWritten(t *testing.T) {
	before := *htmlFlag
	t.Cleanup(func() { *htmlFlag = before })
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	*htmlFlag = filepath.Join(blocked, "a.html")
	if got := page(t, &Failure{}); !strings.HasPrefix(got, "cannot write the page: ") ||
		!strings.Contains(got, blocked) {
		t.Errorf("got %q", got)
	}
	*htmlFlag = ""
	if got := page(t, &Failure{}); got != "" {
		t.Errorf("without the flag: got %q", got)
	}
}
