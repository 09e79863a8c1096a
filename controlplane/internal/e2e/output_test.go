// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func TestVerboseShowsLogs(t *testing.T) {
	t.Parallel()
	p := start(t, "--controllers", "none", "-v", "1")
	eventually(t, waitLimit, "logs on stderr", func(context.Context) error {
		got := p.stderr.String()
		for _, want := range []string{"Serving securely on 127.0.0.1", "etcd"} {
			if !strings.Contains(got, want) {
				return errors.New("no " + want)
			}
		}
		return nil
	})
}

// Without flags the output is text for the user, with the next commands.
func TestTextOutput(t *testing.T) {
	t.Parallel()
	command := exec.Command(binary, "--controllers", "none", "--dir", filepath.Join(t.TempDir(), "it's a dir"))
	command.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	var text []string
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		text = append(text, strings.TrimSpace(lines.Text()))
		if line := text[len(text)-1]; strings.HasPrefix(line, "export KUBECONFIG=") {
			kubeconfig, err := exec.Command("sh", "-c", line+`; printf %s "$KUBECONFIG"`).Output()
			if err != nil {
				t.Errorf("%s: %v", line, err)
			}
			if _, err := clientcmd.LoadFromFile(string(kubeconfig)); err != nil {
				t.Error(err)
			}
		}
		if text[len(text)-1] == "Stop with Ctrl-C." {
			if err := command.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := command.Wait(); err != nil {
		t.Errorf("exit: %v", err)
	}
	whole := strings.Join(text, "\n")
	for _, want := range []string{
		"Kubernetes v1.", " is ready at https://127.0.0.1:", "export KUBECONFIG=", "kubectl get namespaces",
	} {
		if !strings.Contains(whole, want) {
			t.Errorf("output does not contain %q:\n%s", want, whole)
		}
	}
}
