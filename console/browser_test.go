// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the screenshots of the guides")

// TestInBrowser runs browser/check.mjs, which opens the pages in Chromium and reports its checks as lines of JSON. It
// needs Node.js, npm and Chromium, and is skipped without these, except in CI.
func TestInBrowser(t *testing.T) {
	directory, environment := prepareBrowser(t)
	s := newScene(t)
	reconciles := 0
	control := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		reconciles++
		s.reconcileTenant(fmt.Sprintf("new-tenant-%d", reconciles))
	}))
	defer control.Close()
	arguments := []string{"check.mjs", "http://" + s.address + "/console/", control.URL}
	if *update {
		screenshots, err := filepath.Abs("../docs/operating")
		if err != nil {
			t.Fatal(err)
		}
		arguments = append(arguments, screenshots)
	}
	cmd := exec.CommandContext(t.Context(), "node", arguments...)
	cmd.Dir, cmd.Stderr = directory, os.Stderr
	cmd.Env = append(slices.Clone(environment), "HIDDEN="+s.password(t))
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	checks := 0
	for lines := bufio.NewScanner(output); lines.Scan(); checks++ {
		var check struct {
			Name   string
			Errors []string
		}
		if err := json.Unmarshal(lines.Bytes(), &check); err != nil {
			t.Errorf("unexpected line %q", lines.Text())
			continue
		}
		t.Run(check.Name, func(t *testing.T) {
			for _, e := range check.Errors {
				t.Error(e)
			}
		})
	}
	if err := cmd.Wait(); err != nil || checks == 0 {
		t.Fatalf("node: %v after %d checks", err, checks)
	}
}

// prepareBrowser returns a temporary directory with the script and the package that it needs, and the environment for
// it.
func prepareBrowser(t *testing.T) (directory string, environment []string) {
	t.Helper()
	missing := func(reason string) {
		t.Helper()
		if os.Getenv("CI") == "true" {
			t.Fatal(reason)
		}
		t.Skip(reason)
	}
	chromium := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && chromium == "" {
			chromium = path
		}
	}
	if chromium == "" {
		missing("Chromium is not installed")
	}
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			missing(tool + " is not installed")
		}
	}
	directory = t.TempDir()
	if err := os.CopyFS(directory, os.DirFS("browser")); err != nil {
		t.Fatal(err)
	}
	environment = append(os.Environ(), "CHROMIUM="+chromium)
	install := exec.CommandContext(
		t.Context(), "npm", "ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund",
	)
	install.Dir = directory
	if out, err := install.CombinedOutput(); err != nil {
		missing(fmt.Sprintf("npm cannot install playwright-core: %v\n%s", err, strings.TrimSpace(string(out))))
	}
	return directory, environment
}
