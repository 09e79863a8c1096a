// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/fatih/color"
	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Exit codes of the command plan. A Go program that crashes, and one that does not know a flag, exits with 2.
const (
	exitNoChanges = 0
	exitError     = 1
	exitChanges   = 3
)

// Main executes the command "plan" of a program, and ends the process. It returns immediately if the first argument of
// the program is not "plan": after flags, if they are parsed. Call it in the main function, before the program connects
// to a cluster, with the function that adds the controllers to a manager:
//
//	func main() {
//		plan.Main(scheme, setUp)
//		mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Scheme: scheme})
//		…
//		err = setUp(ctx, mgr)
//
// Several plans are made at the same time, each with controllers of its own: the set-up function is called for each of
// them, with other managers, and makes new reconcilers each time. The flag --parallel=1 disables this.
//
// The exit code is 0 if nothing would change, 3 if something would, and 1 after an error of the command or of a
// reconciler. It is not 2, because that is the exit code of a Go program that panics.
//
// The first interrupt (Ctrl-C) ends the command after the current reconcile, with what is planned so far. The second
// one ends it at once.
func Main(scheme *runtime.Scheme, setUp SetUp) {
	args := os.Args[1:]
	if flag.Parsed() {
		args = flag.Args()
	}
	if len(args) == 0 || args[0] != "plan" {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		stop() // the next signal ends the program
		_, _ = fmt.Fprintln(os.Stderr, "interrupted, waiting for the current reconcile: interrupt again to end at once")
	})
	c := &command{scheme: scheme, setUp: setUp, stdout: os.Stdout, stderr: os.Stderr}
	os.Exit(c.main(ctx, args[1:]))
}

// command is the command plan.
type command struct {
	scheme         *runtime.Scheme
	setUp          SetUp
	stdout, stderr io.Writer

	kubeconfig, context, namespace, selector, output, controller string
	all, summary, assumeReady, withoutDryRun                     bool
	masked                                                       []string
	maxReconciles, parallel                                      int
	timeout                                                      time.Duration
}

const usage = `Print what the controllers of this program would change in a cluster. Nothing is written.

Usage:
  %[1]s plan [KIND [NAME | NAMESPACE/NAME]] [flags]

Examples:
  %[1]s plan database default/main         what reconciling the Database main in the namespace default would change
  %[1]s plan database -l tier=gold         the same for all Databases with a label
  %[1]s plan -A --summary                  all that the controllers reconcile when they start, as sums

Exit codes: 0 if nothing would change, 3 if something would, 1 after an error.

Flags:
%[2]s`

func (c *command) flags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("plan", pflag.ContinueOnError)
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "the kubeconfig; by default that of kubectl, or the pod's account")
	flags.StringVar(&c.context, "context", "", "the context of the kubeconfig")
	flags.StringVarP(&c.namespace, "namespace", "n", "", "the namespace; the default is that of the context")
	flags.BoolVarP(&c.all, "all-namespaces", "A", false, "plan in all namespaces")
	flags.StringVarP(&c.selector, "selector", "l", "", "the labels of the objects, for example tier=gold")
	flags.StringVarP(&c.output, "output", "o", "text", "the format: text, or json with one document in each line")
	flags.StringVar(&c.controller, "controller", "", "the name of the only controller to plan for")
	flags.BoolVar(&c.summary, "summary", false, "print the sums of all plans only")
	flags.StringSliceVar(&c.masked, "mask", nil, "paths of fields whose values are not shown; those of Secrets never are")
	flags.BoolVar(&c.assumeReady, "assume-ready", false, "let Deployments and other objects that are written become ready")
	flags.BoolVar(&c.withoutDryRun, "without-dry-run", false, "do not ask the API server what it would store")
	flags.IntVar(&c.maxReconciles, "max-reconciles", 10, "how often one request is reconciled in a plan")
	flags.IntVar(&c.parallel, "parallel", 16, "how many plans are made at the same time")
	flags.DurationVar(&c.timeout, "timeout", defaultTimeout, "how long one reconcile may take")
	flags.SortFlags = false
	flags.SetOutput(io.Discard)
	return flags
}

// main returns the exit code.
func (c *command) main(ctx context.Context, args []string) int {
	flags := c.flags()
	err := flags.Parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		_, _ = fmt.Fprintf(c.stdout, usage, filepath.Base(os.Args[0]), flags.FlagUsages())
		return exitNoChanges
	}
	var found Summary
	if err == nil {
		log.SetLogger(logr.New(log.NullLogSink{}))
		err = c.plan(ctx, flags.Args(), &found)
	}
	switch {
	case err != nil:
		_, _ = fmt.Fprintf(c.stderr, "Error: %s\n", strings.TrimPrefix(err.Error(), "plan: "))
		return exitError
	case found.Failing > 0:
		return exitError
	case found.Changing > 0:
		return exitChanges
	}
	return exitNoChanges
}

func (c *command) plan(ctx context.Context, args []string, summary *Summary) error {
	if c.output != "text" && c.output != "json" {
		return fmt.Errorf("--output must be text or json, got %q", c.output)
	}
	config, err := c.connect()
	if err != nil {
		return err
	}
	config.WarningHandler = rest.NoWarnings{}
	cluster, err := client.New(config, client.Options{Scheme: c.scheme})
	if err != nil {
		return err
	}
	options := Options{AssumeReady: c.assumeReady, WithoutDryRun: c.withoutDryRun, MaxReconciles: c.maxReconciles}
	options.Timeout, options.Parallel = c.timeout, c.parallel
	options.Mask.Paths = c.masked
	planner, err := New(ctx, cluster, c.setUp, options)
	if err != nil {
		return err
	}
	defer planner.Close()
	selection, err := c.selection(planner, args)
	if err != nil {
		return err
	}
	err = planner.Each(ctx, selection, func(p *Plan) error {
		summary.Add(p)
		if c.summary {
			if summary.Plans%500 == 0 {
				_, _ = fmt.Fprintf(c.stderr, "planned %d requests, %d with changes\n", summary.Plans, summary.Changing)
			}
			return nil
		}
		return c.print(p)
	})
	if err != nil && ctx.Err() == nil {
		return err
	}
	if err != nil {
		_, _ = fmt.Fprintln(c.stderr, "these are the plans so far")
	}
	return errors.Join(c.finish(summary), err)
}

// connect returns the connection to the cluster, and sets the namespace.
func (c *command) connect() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	if global := flag.Lookup("kubeconfig"); global != nil && c.kubeconfig == "" {
		rules.ExplicitPath = global.Value.String()
	}
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		rules, &clientcmd.ConfigOverrides{CurrentContext: c.context},
	)
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, err
	}
	if config.QPS == 0 {
		config.QPS = -1 // the API server limits requests by their priority
	}
	if c.all {
		c.namespace = ""
	} else if c.namespace == "" {
		c.namespace, _, err = loaded.Namespace()
	}
	return config, err
}

func (c *command) selection(planner *Planner, args []string) (Selection, error) {
	selection := Selection{Namespace: c.namespace, Controller: c.controller}
	if len(args) == 1 && strings.Count(args[0], "/") == 1 { // kind/name
		args = strings.Split(args[0], "/")
	}
	switch {
	case len(args) > 2:
		return selection, fmt.Errorf("at most a kind and a name are expected, got %d arguments", len(args))
	case len(args) == 0 && c.selector != "":
		return selection, errors.New("--selector requires a kind")
	case len(args) == 2 && (c.selector != "" || c.all):
		return selection, errors.New("a name excludes --selector and --all-namespaces")
	}
	var err error
	if len(args) > 0 {
		if selection.Kind, err = planner.KindFor(args[0]); err != nil {
			return selection, err
		}
	}
	if len(args) == 2 {
		selection.Name = args[1]
		if namespace, name, qualified := strings.Cut(args[1], "/"); qualified {
			selection.Namespace, selection.Name = namespace, name
		}
	}
	if c.selector != "" {
		if selection.Labels, err = labels.Parse(c.selector); err != nil {
			return selection, fmt.Errorf("--selector: %w", err)
		}
	}
	return selection, nil
}

// print prints a plan. In a text, plans without changes are left out.
func (c *command) print(p *Plan) error {
	if c.output == "json" {
		return c.json(p)
	}
	if !p.HasChanges() && len(p.Errors) == 0 {
		return nil
	}
	for _, r := range p.Requests {
		if _, err := fmt.Fprintf(c.stdout, "%s\n", color.New(color.Bold).Sprint(r)); err != nil {
			return err
		}
	}
	for line := range strings.Lines(p.Text()) {
		if _, err := io.WriteString(c.stdout, colored(line)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(c.stdout)
	return err
}

// finish prints the end.
func (c *command) finish(summary *Summary) error {
	switch {
	case c.output == "json" && c.summary:
		return c.json(summary)
	case c.output == "json":
		return nil
	case !c.summary:
		summary.Groups, summary.Others, summary.Errors, summary.Unknown = nil, 0, nil, nil
	}
	for line := range strings.Lines(summary.Text()) {
		if _, err := io.WriteString(c.stdout, colored(line)); err != nil {
			return err
		}
	}
	return nil
}

func (c *command) json(value any) error {
	encoder := json.NewEncoder(c.stdout)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

var colors = map[string]*color.Color{
	"+": color.New(color.FgGreen), "~": color.New(color.FgYellow), "±": color.New(color.FgRed),
	"-": color.New(color.FgRed), "!": color.New(color.FgRed, color.Bold), "?": color.New(color.FgMagenta),
}

// colored adds a color to a line of a text if the standard output is a terminal.
func colored(line string) string {
	sign, _, _ := strings.Cut(line, " ")
	if c := colors[sign]; c != nil {
		return c.Sprint(line)
	}
	return line
}
