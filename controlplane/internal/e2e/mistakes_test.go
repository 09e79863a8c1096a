// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func containsLine(err error, want string) bool {
	return slices.ContainsFunc(
		strings.Split(err.Error(), "\n"), func(line string) bool { return strings.Contains(line, want) },
	)
}

func TestMistakesAreExplained(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	taken := listener.Addr().(*net.TCPAddr).Port
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(
		file, []byte("apiVersion: v1\nkind: Config\ncurrent-context: production\n"), 0o600,
	); err != nil {
		t.Fatal(err)
	}
	corrupt := t.TempDir()
	if err := os.Mkdir(filepath.Join(corrupt, "pki"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(corrupt, "pki", "ca.key"), []byte("not a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	corruptEtcd := t.TempDir()
	for _, file := range []string{"wal/0000000000000000-0000000000000000.wal", "snap/db"} {
		path := filepath.Join(corruptEtcd, "etcd", "member", file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, bytes.Repeat([]byte("garbage!"), 4096), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cases := []struct {
		name string
		args []string
		want string // one line, or the beginning of it if it ends in "…"
	}{
		{"port taken", []string{"--port", fmt.Sprint(taken)}, fmt.Sprintf("error: port %d: address already in use", taken)},
		{"port out of range", []string{"--port", "65536"}, "error: port 65536: must be between 0 (any free port) and 65535"},
		{"port not a number", []string{"--port", "http"}, "error: invalid argument \"http\" for \"--port\" flag…"},
		{"dir is a file", []string{"--dir", file}, "error: dir " + file + ": not a directory"},
		{
			"dir under a file",
			[]string{"--dir", filepath.Join(file, "dir")},
			"error: dir " + filepath.Join(file, "dir") + ": not a directory",
		},
		{
			"dir with a broken key",
			[]string{"--dir", corrupt},
			"error: key " + filepath.Join(corrupt, "pki", "ca.key") + ": …",
		},
		{
			"dir with broken data",
			[]string{"--dir", corruptEtcd},
			"error: etcd: cannot use the data in " + filepath.Join(
				corruptEtcd, "etcd",
			) + " (remove it to start with empty data): …",
		},
		{
			"foreign kubeconfig",
			[]string{"--kubeconfig", file},
			"error: kubeconfig " + file + ": exists and was not written by a control plane…",
		},
		{
			"kubeconfig in a missing directory",
			[]string{"--kubeconfig", "/no/such/file"},
			"error: kubeconfig /no/such/file: no such file or directory",
		},
		{
			"unknown controllers",
			[]string{"--controllers", "job-controller,xyz,abc"},
			"error: controllers: abc, xyz: unknown; known controllers: …",
		},
		{
			"none and more",
			[]string{"--controllers", "none,job-controller"},
			"error: controllers: \"none\" must be the only name",
		},
		{"negative verbosity", []string{"-v", "-1"}, "error: verbosity -1: must not be negative"},
		{"unknown output", []string{"--output", "yaml"}, "error: output \"yaml\": must be text or json"},
		{"unknown flag", []string{"--prot", "1"}, "error: unknown flag: --prot"},
		{"unknown argument", []string{"start"}, "error: unknown command \"start\" for \"trueup-controlplane\""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			temp := t.TempDir()
			command := exec.Command(binary, c.args...)
			command.Env = append(os.Environ(), "TMPDIR="+temp)
			var stdout, stderr bytes.Buffer
			command.Stdout, command.Stderr = &stdout, &stderr
			err := command.Run()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
				t.Errorf("exit: %v, want code 1", err)
			}
			got, more, _ := strings.Cut(strings.TrimSuffix(stderr.String(), "\n"), "\n")
			for line := range strings.Lines(more) {
				if !strings.HasPrefix(line, "  last logged: ") {
					t.Errorf("stderr has an unexpected line %q", line)
				}
			}
			beginning, cut := strings.CutSuffix(c.want, "…")
			if cut && !strings.HasPrefix(got, beginning) || !cut && got != c.want {
				t.Errorf("stderr = %q, want %q", got, c.want)
			}
			if stdout.Len() > 0 {
				t.Errorf("stdout = %q, want no output", stdout.String())
			}
			if left := foldersIn(t, temp); len(left) > 0 {
				t.Errorf("directories left: %v", left)
			}
		})
	}
	content, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(content), "production") {
		t.Errorf("foreign kubeconfig = %q, %v, want it unchanged", content, err)
	}
}

func TestAllMistakesAreListed(t *testing.T) {
	output, _ := exec.Command(binary, "--port", "-1", "-v", "-1", "--controllers", "xyz").CombinedOutput()
	for _, want := range []string{"port -1", "verbosity -1", "controllers: xyz"} {
		if !strings.Contains(string(output), want) {
			t.Errorf("output %q does not mention %q", output, want)
		}
	}
}

func TestVersion(t *testing.T) {
	for _, argument := range []string{"version", "--version"} {
		output, err := exec.Command(binary, argument).Output()
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Fields(string(output))
		if len(fields) != 6 || fields[0] != "trueup-controlplane" || fields[2] != "kubernetes" || fields[4] != "etcd" ||
			!strings.HasPrefix(fields[3], "v1.") || !strings.HasPrefix(fields[5], "v3.") {
			t.Errorf("%s prints %q, want trueup-controlplane <version> kubernetes v1.… etcd v3.…", argument, output)
		}
	}
}
