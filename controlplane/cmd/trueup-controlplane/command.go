// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"trueup.dev/controlplane"
)

const (
	outputText = "text"
	outputJSON = "json"
)

// readyLine is printed with --output json. Programs parse it, so names must not change.
type readyLine struct {
	URL               string `json:"url"`
	Kubeconfig        string `json:"kubeconfig"`
	Dir               string `json:"dir"`
	KubernetesVersion string `json:"kubernetesVersion"`
	PID               int    `json:"pid"`
}

type settings struct {
	controlplane.Options
	pods          bool
	stopWithStdin bool
	output        string
	version       bool
	leases        string
	leaseGrace    time.Duration
}

func newCommand(stdin io.Reader, stdout, stderr io.Writer) *cobra.Command {
	s := settings{Options: controlplane.Options{LogOutput: stderr}}
	command := &cobra.Command{
		Use:   "trueup-controlplane",
		Short: "Run a Kubernetes control plane in one process, until interrupted",
		Long: `Run etcd, kube-apiserver and controllers in one process on the loopback interface, until interrupted.

Pods run without a machine: a node "trueup" is Ready, and pods become Running on it
although no container is executed. The annotation trueup.dev/pod-phase of a pod selects
another outcome: Pending, Running, NotReady, Succeeded or Failed.`,
		Args:              cobra.NoArgs,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(command *cobra.Command, _ []string) error {
			if s.version {
				_, err := io.WriteString(stdout, versions())
				return err
			}
			s.DisablePods = !s.pods
			return s.serve(command.Context(), stdin, stdout)
		},
	}
	command.SetOut(stdout)
	command.SetErr(stderr)
	s.addFlags(command)
	command.AddCommand(&cobra.Command{
		Use:   "version",
		Short: "Print the versions of this command, Kubernetes and etcd",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(stdout, versions())
			return err
		},
	})
	return command
}

func versions() string {
	return fmt.Sprintf("trueup-controlplane %s kubernetes %s etcd %s\n",
		controlplane.Version(), controlplane.KubernetesVersion(), controlplane.EtcdVersion())
}

func (s *settings) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringVar(
		&s.Dir, "dir", "", "directory for all data, kept for a restart (default: a temporary directory, removed at exit)",
	)
	flags.StringVar(&s.Kubeconfig, "kubeconfig", "", "also write the admin's kubeconfig to this file; removed at exit")
	flags.IntVar(&s.Port, "port", 0, "port of kube-apiserver on 127.0.0.1 (default: a free port)")
	flags.StringSliceVar(
		&s.Controllers,
		"controllers",
		nil,
		`controllers to run, named as in kube-controller-manager: exactly these names, "*" for the default, "none", `+
			`or changes of the default such as "-cronjob-controller,+bootstrap-signer-controller" `+
			`(default: all that need no machines)`,
	)
	flags.BoolVar(&s.pods, "pods", true, "run pods on a simulated node")
	flags.Int64Var(&s.StorageQuota, "storage-quota", 0, "maximum size of etcd's database in bytes (default: 4 GiB)")
	flags.StringArrayVar(
		&s.APIServerArgs, "apiserver-arg", nil,
		`flag of kube-apiserver as "name=value", for example "feature-gates=Name=true"; may be repeated`,
	)
	flags.StringVar(
		&s.EmulatedVersion, "emulated-version", "",
		`minor version of Kubernetes whose APIs and features to emulate, for example "1.36" (default: none)`,
	)
	flags.StringVar(&s.AuditLog, "audit-log", "", "file to which kube-apiserver appends its audit events (default: none)")
	flags.BoolVar(
		&s.stopWithStdin, "stop-with-stdin", false,
		"stop when standard input ends, for example because the parent process ended",
	)
	flags.StringVar(
		&s.output, "output", outputText, `output format when ready: "text", or "json" for one machine-readable line`,
	)
	s.addLeaseFlags(flags)
	// cobra's own flag would be the flag of the Kubernetes libraries, which has another type.
	flags.BoolVar(&s.version, "version", false, "print the versions of this command, Kubernetes and etcd")
	flags.IntVarP(&s.Verbosity, "v", "v", 0, "log level; above 0, logs of the components are written to standard error")
}

// serve runs the control plane until a signal or the end of stdin.
func (s settings) serve(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	if s.output != outputText && s.output != outputJSON {
		return fmt.Errorf("output %q: must be %s or %s", s.output, outputText, outputJSON)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if s.stopWithStdin {
		var stdinEnded context.CancelFunc
		ctx, stdinEnded = context.WithCancel(ctx)
		go func() {
			_, _ = io.Copy(io.Discard, stdin)
			stdinEnded()
		}()
	}
	go limitMemory(ctx)
	if s.leases != "" {
		return s.serveLeases(ctx)
	}
	return controlplane.Run(ctx, s.Options, func(cp *controlplane.ControlPlane) error { return s.announce(stdout, cp) })
}

// announce prints that the control plane is ready. It returns an error if the output cannot be written.
func (s settings) announce(stdout io.Writer, cp *controlplane.ControlPlane) error {
	kubeconfig := cp.Kubeconfig()
	if s.output == outputJSON {
		return json.NewEncoder(stdout).Encode(readyLine{
			URL: cp.URL(), Kubeconfig: kubeconfig, Dir: cp.Dir(),
			KubernetesVersion: controlplane.KubernetesVersion(), PID: os.Getpid(),
		})
	}
	_, err := fmt.Fprintf(stdout, `Kubernetes %s is ready at %s
  export KUBECONFIG=%s
  kubectl get namespaces
Stop with Ctrl-C.
`, controlplane.KubernetesVersion(), cp.URL(), shellQuote(kubeconfig))
	return err
}

// shellQuote returns text as one word of a POSIX shell.
func shellQuote(text string) string {
	special := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-+:@%,", r)
	}
	if text != "" && !strings.ContainsFunc(text, special) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
