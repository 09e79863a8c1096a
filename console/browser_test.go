// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

var update = flag.Bool("update", false, "write the screenshots of the guides")

// TestInBrowser runs browser/check.mjs, which opens the pages in Chromium and reports its checks as lines of JSON. It
// needs Node.js, npm and Chromium, and is skipped without these.
func TestInBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("opens each page in Chromium several times, with 10,000 objects, which takes more than a minute")
	}
	directory, environment := prepareBrowser(t)
	s := newScene(t)
	var reconciles atomic.Int64
	control := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(reconciles.Add(1))
		if r.URL.Path != "/failing" {
			s.reconcileTenant(fmt.Sprintf("new-tenant-%d", n))
		} else if err := s.touch(r.Context(), "orders", n); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			t.Error(err)
		}
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
			Name    string
			Errors  []string
			Seconds float64
		}
		if err := json.Unmarshal(lines.Bytes(), &check); err != nil {
			t.Errorf("unexpected line %q", lines.Text())
			continue
		}
		t.Run(check.Name, func(t *testing.T) {
			t.Logf("%.1f s", check.Seconds)
			for _, e := range check.Errors {
				t.Error(e)
			}
		})
	}
	if err := cmd.Wait(); err != nil || checks == 0 {
		t.Fatalf("node: %v after %d checks", err, checks)
	}
}

const (
	// minChromium is the first version in which the keyboard reaches every element that scrolls. With older ones, the
	// order of the elements that Tab reaches is another one.
	minChromium = 130
	// minNode is the version that playwright-core requires.
	minNode = 18
)

var firstNumber = regexp.MustCompile(`\d+`)

// findTool returns the path of the first of the programs that is installed, or skips the test if none is, or if its
// version is older than wanted.
func findTool(t *testing.T, what string, wanted int, names ...string) string {
	t.Helper()
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		out, err := exec.CommandContext(t.Context(), path, "--version").Output()
		if err != nil {
			t.Skipf("%s --version: %v: install %s", path, err, what)
		}
		if version, err := strconv.Atoi(firstNumber.FindString(string(out))); err != nil || version < wanted {
			t.Skipf("%s has version %q: install %s", path, strings.TrimSpace(string(out)), what)
		}
		return path
	}
	t.Skipf("%s not found on the PATH: install %s", strings.Join(names, ", "), what)
	return ""
}

// prepareBrowser returns a temporary directory with the script and the package that it needs, and the environment for
// it.
func prepareBrowser(t *testing.T) (directory string, environment []string) {
	t.Helper()
	chromium := findTool(
		t, fmt.Sprintf("Chromium %d or later (Debian: apt-get install chromium)", minChromium), minChromium,
		"chromium", "chromium-browser", "google-chrome",
	)
	findTool(t, fmt.Sprintf("Node.js %d or later (Debian: apt-get install nodejs)", minNode), minNode, "node")
	directory = t.TempDir()
	if err := os.CopyFS(directory, os.DirFS("browser")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(installedModules(t), filepath.Join(directory, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return directory, append(os.Environ(), "CHROMIUM="+chromium)
}

// installedModules returns a directory with the packages that browser/package-lock.json names. It is kept in the cache
// of the user, or in a temporary directory if there is none.
func installedModules(t *testing.T) string {
	t.Helper()
	lock, err := os.ReadFile("browser/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	if user, err := os.UserCacheDir(); err == nil {
		if user = filepath.Join(user, "trueup", "console-browser"); os.MkdirAll(user, 0o750) == nil {
			cache = user
		}
	}
	installed := filepath.Join(cache, fmt.Sprintf("%x", sha256.Sum256(lock)), "node_modules")
	if _, err := os.Stat(installed); err == nil {
		return installed
	}
	findTool(t, "npm (Debian: apt-get install npm)", 0, "npm")
	directory, err := os.MkdirTemp(cache, "new-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(directory)
	if err := os.CopyFS(directory, os.DirFS("browser")); err != nil {
		t.Fatal(err)
	}
	install := exec.CommandContext(
		t.Context(), "npm", "ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund",
	)
	install.Dir = directory
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("npm cannot install playwright-core: %v: connect to a registry of npm\n%s", err, bytes.TrimSpace(out))
	}
	// Another process may have installed the same packages. Only a complete directory gets the name.
	if err := os.Rename(directory, filepath.Dir(installed)); err != nil {
		if _, err := os.Stat(installed); err != nil {
			t.Fatal(err)
		}
	}
	return installed
}
