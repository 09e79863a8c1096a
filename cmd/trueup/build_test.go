// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trueup.dev/sandbox"
)

func TestBuild_WritesACopy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary := filepath.Join(dir, "original")
	if err := os.WriteFile(binary, []byte("a program"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "older"), []byte("an older program"), 0o755); err != nil {
		t.Fatal(err)
	}
	env := []string{sandbox.BinaryVariable + "=" + binary, sandbox.KubeconfigVariable + "="}
	for output, want := range map[string]string{
		"":                           binary,
		filepath.Join(dir, "a file"): filepath.Join(dir, "a file"),
		filepath.Join(dir, "older"):  filepath.Join(dir, "older"),
		dir:                          filepath.Join(dir, controlPlaneName),
		filepath.Join(dir, "new", "folder") + "/": filepath.Join(dir, "new", "folder", controlPlaneName),
	} {
		c := startNow(t, env, "build", "--output="+output)
		if code := c.ends(); code != 0 || c.lastLine() != want {
			t.Errorf("build --output=%q: exit code %d, want 0 and the path %s\n%s", output, code, want, c.output())
			continue
		}
		content, err := os.ReadFile(want)
		if err != nil || string(content) != "a program" {
			t.Errorf("%s contains %q, %v", want, content, err)
		}
		if info, err := os.Stat(want); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s is not executable: %v, %v", want, info.Mode(), err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("files left: %v, %v", left, err)
	}
}

func TestBuild_PrintsThePlaceInTheCache(t *testing.T) {
	t.Parallel()
	cache := filepath.Join(t.TempDir(), "cache")
	env := []string{"XDG_CACHE_HOME=" + cache, "HOME=" + cache}
	key, dir := startNow(t, env, "build", "--print-key"), startNow(t, env, "build", "--print-dir")
	if key.ends() != 0 || dir.ends() != 0 {
		t.Fatalf("%s%s", key.output(), dir.output())
	}
	if name := key.lastLine(); !strings.HasPrefix(name, "tree-") || filepath.Base(dir.lastLine()) != name ||
		!strings.HasPrefix(dir.lastLine(), cache) {
		t.Errorf("key %s, directory %s", name, dir.lastLine())
	}
	if _, err := os.Stat(cache); !os.IsNotExist(err) {
		t.Errorf("the cache was changed: %v", err)
	}
}

func TestBuild_Mistakes(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"--print-key, --print-dir and --output exclude each other": {"--print-key", "--print-dir"},
		"exclude each other":      {"--print-key", "--output=x"},
		"--output: mkdir " + file: {"--output=" + filepath.Join(file, "x")},
		`unknown argument "x"`:    {"x"},
	} {
		c := startNow(t, []string{sandbox.BinaryVariable + "=" + file}, append([]string{"build"}, args...)...)
		if code := c.ends(); code == 0 || !strings.Contains(c.output(), want) {
			t.Errorf("build %v: exit code %d, want an error with %q\n%s", args, code, want, c.output())
		}
	}
}
