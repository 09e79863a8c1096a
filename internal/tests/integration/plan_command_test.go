// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/plan"
)

// planProgram is the environment variable that makes the test binary a program with the command plan. Its value is what
// the reconciler does.
const planProgram = "TRUEUP_TEST_PLAN_PROGRAM"

// mainOfPlanProgram is the main function of that program.
func mainOfPlanProgram(behavior string) {
	flags := flag.NewFlagSet("program", flag.ExitOnError)
	_ = flags.Parse(os.Args[1:])
	plan.Main(fixture.NewScheme(), func(_ context.Context, mgr ctrl.Manager) error {
		if behavior == "crashes" {
			panic("at the disco")
		}
		return ctrl.NewControllerManagedBy(mgr).For(&fixture.Resource{}).Complete(reconcile.Func(
			func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
				os.Stdout.WriteString("reconciling\n")
				switch behavior {
				case "changes":
					made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: "made"}}
					return reconcile.Result{}, client.IgnoreAlreadyExists(mgr.GetClient().Create(ctx, made))
				case "fails":
					return reconcile.Result{}, errors.New("it fails")
				case "waits":
					<-ctx.Done()
					return reconcile.Result{}, ctx.Err()
				case "hangs":
					select {}
				}
				return reconcile.Result{}, nil
			},
		))
	})
	os.Exit(10) // plan.Main does not return for the command plan
}

// planCommand starts the program.
func (e *env) planCommand(behavior string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(e.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), planProgram+"="+behavior, "KUBECONFIG="+e.KubeconfigPath())
	return cmd
}

// waitForLine reads until a line contains a text.
func waitForLine(t *testing.T, from io.Reader, want string) {
	t.Helper()
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		if strings.Contains(lines.Text(), want) {
			return
		}
	}
	t.Fatalf("no line contains %q, error %v", want, lines.Err())
}

// Does the exit code distinguish changes from a crash and from a mistake in the command line?
func TestPlanCommand_ExitCodes(t *testing.T) {
	e := newEnv(t)
	parent := newResource("parent", nil)
	parent.Namespace = e.Namespace
	e.Add(parent)
	command := []string{"plan", "resources", e.Namespace + "/parent"}
	for name, c := range map[string]struct {
		behavior string
		args     []string
		code     int
		stderr   string
	}{
		"no changes":             {"nothing", command, 0, ""},
		"changes":                {"changes", command, 3, ""},
		"an error":               {"fails", command, 1, ""},
		"a crash":                {"crashes", command, 2, "panic: at the disco"},
		"a flag of the program":  {"changes", append([]string{"-misspelled"}, command...), 2, "-misspelled"},
		"a flag of the command":  {"changes", append(command, "--misspelled"), 1, "--misspelled"},
		"the time limit":         {"waits", append(command, "--timeout", "50ms"), 1, ""},
		"a wrong time limit":     {"waits", append(command, "--timeout", "-1s"), 1, "Timeout must not be negative, got -1s"},
		"another object, absent": {"changes", []string{"plan", "resources", e.Namespace + "/absent"}, 1, "not found"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := e.planCommand(c.behavior, c.args...)
			var stdout, stderr strings.Builder
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
				t.Fatal(err)
			}
			if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(stderr.String(), c.stderr) {
				t.Errorf("exit code %d, want %d and %q:\n%s%s", code, c.code, c.stderr, &stdout, &stderr)
			}
		})
	}
}

// Does Ctrl-C end the command while a reconciler runs that does not look at its context?
func TestPlanCommand_Interrupted(t *testing.T) {
	e := newEnv(t)
	parent := newResource("parent", nil)
	parent.Namespace = e.Namespace
	e.Add(parent)
	for name, c := range map[string]struct {
		behavior string
		signals  int
		want     string
	}{
		"a reconciler that returns":         {"waits", 1, "exit status 1"},
		"a reconciler that does not return": {"hangs", 2, "signal: interrupt"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := e.planCommand(c.behavior, "plan", "resources", e.Namespace+"/parent", "--timeout", "1h")
			stdout, err := cmd.StdoutPipe()
			e.Must(err)
			stderr, err := cmd.StderrPipe()
			e.Must(err)
			e.Must(cmd.Start())
			stop := context.AfterFunc(e.Context(), func() { _ = cmd.Process.Kill() })
			defer stop()
			waitForLine(t, stdout, "reconciling")
			e.Must(cmd.Process.Signal(os.Interrupt))
			if c.signals > 1 {
				waitForLine(t, stderr, "interrupt again to end at once")
				e.Must(cmd.Process.Signal(syscall.SIGINT))
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			select {
			case err := <-ended:
				if err == nil || err.Error() != c.want {
					t.Errorf("error %v, want %q", err, c.want)
				}
			case <-time.After(30 * time.Second):
				t.Error("the command does not end")
			}
		})
	}
}
