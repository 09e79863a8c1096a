// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// emptyCache gives the test its own cache directory.
func emptyCache(t *testing.T) string {
	t.Helper()
	// Keep the build cache.
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	dirs := strings.Fields(string(out))
	t.Setenv("GOCACHE", dirs[0])
	t.Setenv("GOMODCACHE", dirs[1])
	withoutVariables(t)
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(home, "cache"))
	t.Setenv("LocalAppData", filepath.Join(home, "cache"))
	// The telemetry of the go command would keep writing to this home directory while the test removes it.
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "config"))
	t.Setenv("AppData", filepath.Join(home, "config"))
	config, err := os.UserConfigDir()
	if err != nil {
		t.Fatal(err)
	}
	writeFiles(t, config, map[string]string{"go/telemetry/mode": "off"})
	dir, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "trueup", "controlplane")
}

func TestFindNamedBinary(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"plain": "text"})
	good := installFake(t, dir, binaryName)
	cases := map[string]struct {
		option, variable, want, wantErr string
	}{
		"the option":   {good, "/does/not/exist", good, ""},
		"the variable": {"", good, good, ""},
		"the option names a missing file": {
			filepath.Join(dir, "nothing"),
			good,
			"",
			"Options.Binary does not name a control plane binary",
		},
		"the variable names a missing file": {
			"",
			filepath.Join(dir, "nothing"),
			"",
			"TRUEUP_CONTROLPLANE does not name a control plane binary",
		},
		"a file that is not a program":     {filepath.Join(dir, "plain"), "", "", "not executable"},
		"a directory is not a program":     {dir, "", "", "not a regular file"},
		"a relative path becomes absolute": {"nothing", "", "", string(filepath.Separator) + "nothing: no such file"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv(BinaryVariable, c.variable)
			got, err := findBinary(t.Context(), &Options{Binary: c.option, Progress: io.Discard})
			if c.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), c.wantErr) {
					t.Errorf("got error %v, want %q in it", err, c.wantErr)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestBuild(t *testing.T) {
	binary := installFake(t, t.TempDir(), binaryName)
	cases := map[string]struct {
		o                  Options
		binary, kubeconfig string
		want, wantErr      string
	}{
		"the binary that Start uses":  {Options{}, binary, "", binary, ""},
		"nothing to build":            {Options{}, "/does/not/exist", "/some/kubeconfig", "", ""},
		"the option, not the cluster": {Options{Binary: binary}, "", "/some/kubeconfig", binary, ""},
		"mistakes":                    {Options{Verbosity: -1}, binary, "", "", "Verbosity: must not be negative"},
		"no binary": {
			Options{},
			"/does/not/exist",
			"",
			"",
			"TRUEUP_CONTROLPLANE does not name a control plane binary",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv(BinaryVariable, c.binary)
			t.Setenv(KubeconfigVariable, c.kubeconfig)
			got, err := Build(t.Context(), c.o)
			if c.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), c.wantErr) {
					t.Errorf("got error %v, want %q in it", err, c.wantErr)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestUnusableDirectories(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	writeFiles(t, filepath.Dir(file), map[string]string{"file": ""})
	binary := installFake(t, t.TempDir(), binaryName)
	missing := filepath.Join(t.TempDir(), "missing")
	cases := map[string]struct {
		variables map[string]string
		want      []string
	}{
		"the temporary directory": {
			map[string]string{"TMPDIR": missing, BinaryVariable: binary},
			[]string{"the temporary directory " + missing + " cannot be used", "set TMPDIR to a directory"},
		},
		"the cache": {
			map[string]string{"XDG_CACHE_HOME": file, "HOME": file},
			[]string{"creating the control plane's cache directory: mkdir " + file, "set " + cacheVariable(), BinaryVariable},
		},
		"no home": {
			map[string]string{"XDG_CACHE_HOME": "", "HOME": ""},
			[]string{"no cache directory for the control plane binary", "set " + cacheVariable(), BinaryVariable},
		},
	}
	if runtime.GOOS == "windows" {
		t.Skip("Windows has other variables")
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			emptyCache(t)
			for variable, value := range c.variables {
				t.Setenv(variable, value)
			}
			for how, start := range map[string]func(context.Context, Options) (*Sandbox, error){
				"Start": Start, "ForTest": openShared,
			} {
				o := Options{Progress: io.Discard}
				if err := o.prepare(); err != nil {
					t.Fatal(err)
				}
				_, err := start(t.Context(), o)
				for _, want := range c.want {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("%s: got error %v, want %q in it", how, err, want)
					}
				}
			}
		})
	}
}
