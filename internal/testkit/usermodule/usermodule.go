// SPDX-License-Identifier: Apache-2.0

// Package usermodule lets tests run commands as users do: in a separate module outside of this repository.
package usermodule

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// published maps the modules of this repository to their directories.
var published = map[string]string{"trueup.dev": ".", "trueup.dev/controlplane": "controlplane"}

// Module is a directory for a user's module. It is initially empty.
type Module struct {
	// Dir is the path of the directory.
	Dir string
	// Env is the environment of its commands.
	Env []string

	checkout string
}

// New returns an empty directory outside of the repository. checkout is the path of the repository. Modules come from
// the module cache, and missing modules from the module proxy in use. Modules of this repository are not available from
// a proxy.
func New(t testing.TB, checkout string) *Module {
	t.Helper()
	absolute, err := filepath.Abs(checkout)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		t.Fatalf("go env: %v", err)
	}
	settings := strings.Split(strings.TrimSpace(string(out)), "\n")
	proxy := httptest.NewServer(moduleProxy(filepath.Join(settings[0], "cache", "download"), settings[1]))
	t.Cleanup(proxy.Close)
	m := &Module{Dir: t.TempDir(), checkout: absolute}
	for _, variable := range os.Environ() {
		// The settings of the repository and of a coverage run do not apply to a user.
		if name, _, _ := strings.Cut(variable, "="); name != "GOFLAGS" && name != "GOCOVERDIR" {
			m.Env = append(m.Env, variable)
		}
	}
	// The modules in the module cache were already verified against the checksum database.
	m.Env = append(m.Env, "GOPROXY="+proxy.URL, "GOSUMDB=off", "GOWORK=off", "PWD="+m.Dir)
	return m
}

// moduleProxy serves the modules of a download cache and no modules of this repository. It redirects to upstream for
// all others.
func moduleProxy(cache, upstream string) http.Handler {
	files := http.FileServer(http.Dir(cache))
	elsewhere := ""
	for entry := range strings.FieldsFuncSeq(upstream, func(r rune) bool { return r == ',' || r == '|' }) {
		if parsed, err := url.Parse(entry); err == nil && strings.HasPrefix(parsed.Scheme, "http") {
			elsewhere = strings.TrimSuffix(entry, "/")
			break
		}
	}
	return http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		module, _, _ := strings.Cut(in.URL.Path, "/@")
		_, err := os.Stat(filepath.Join(cache, filepath.FromSlash(in.URL.Path)))
		switch {
		case module == "/trueup.dev" || strings.HasPrefix(module, "/trueup.dev/"):
			http.NotFound(out, in)
		// version lists in the cache contain only downloaded versions
		case err == nil && !strings.HasSuffix(in.URL.Path, "/list"):
			files.ServeHTTP(out, in)
		case elsewhere != "":
			http.Redirect(out, in, elsewhere+in.URL.EscapedPath(), http.StatusFound)
		default:
			http.NotFound(out, in)
		}
	})
}

// UseCheckout adds replace directives for the modules of the repository to the module, which must have been created
// with "go mod init".
func (m *Module) UseCheckout(t testing.TB) {
	t.Helper()
	args := []string{"mod", "edit"}
	for module, dir := range published {
		args = append(args, "-replace", module+"="+filepath.Join(m.checkout, dir))
	}
	m.Run(t, "go", args...)
}

// Command returns a command that runs in the directory.
func (m *Module) Command(t testing.TB, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = m.Dir, m.Env
	return cmd
}

// Run runs a command in the directory and returns its standard output. If it fails, Run ends t with all of its output.
func (m *Module) Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	cmd := m.Command(t, name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String()
}

// Write writes a file in the directory.
func (m *Module) Write(t testing.TB, name, content string) {
	t.Helper()
	path := filepath.Join(m.Dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(fmt.Errorf("write a file of the module: %w", err))
	}
}

// Read returns the content of a file in the directory.
func (m *Module) Read(t testing.TB, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(m.Dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
