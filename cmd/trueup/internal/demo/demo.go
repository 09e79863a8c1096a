// SPDX-License-Identifier: Apache-2.0

// Package demo demonstrates the Website controller on a real Kubernetes API. It reports only what it has observed
// through the API, with its own clients and watches, which share no state with the controller.
//
// Run is the whole demo. Each chapter has its own file.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"trueup.dev/cmd/trueup/internal/screen"
	"trueup.dev/examples/website"
	"trueup.dev/examples/website/dns"
	"trueup.dev/internal/objects/manifests"
	"trueup.dev/sandbox"
)

// Options configure the demo.
type Options struct {
	// Files are files and directories with the objects to apply. Default: the samples of the example.
	Files []string
	// Backend is what the demo runs on. Default: the default of the sandbox.
	Backend sandbox.Backend
	// Replicas is the number of replicas of the controller among which many Websites are divided, for a demo in which one
	// replica is killed. Files and Stay must not be set. Default: 0, one controller in this process.
	Replicas int
	// Stay keeps everything running after the last chapter, until the context is done.
	Stay bool
	// Timeout is the timeout of each chapter.
	Timeout time.Duration
	// Verbosity 1 prints the logs of the controller; higher values also print the logs of the control plane.
	Verbosity int
	// Out receives the output of the demo.
	Out io.Writer
	// Log receives logs, and the progress of building and starting the control plane.
	Log io.Writer
}

// InputError is a mistake in the given objects.
type InputError struct{ err error }

func (e *InputError) Error() string { return e.err.Error() }
func (e *InputError) Unwrap() error { return e.err }

// demo is the state that the chapters share.
type demo struct {
	*screen.Screen
	client     client.Client // bypasses all caches
	observer   *observer
	records    dns.Provider // reads the records that the controller published, from files
	controller *running
	documents  []manifests.Document
	sites      []types.NamespacedName // in the order of the documents
	foreign    bool                   // the cluster is an existing one
	created    bool                   // in an existing cluster: there may be objects to delete
	timeout    time.Duration
	began      time.Time
	made       tally
}

// Run runs the demo. It returns an error if an expected state is not observed in time, or if the controller reported an
// error. When the context is done, Run stops and returns its cause. In all cases all processes are stopped.
func Run(ctx context.Context, o Options) (err error) {
	setLoggers(logr.FromSlogHandler(handler(o)))
	d := &demo{Screen: screen.New(o.Out), timeout: o.Timeout, began: time.Now()}
	if err := d.load(o); err != nil {
		return err
	}

	d.Step("Start the sandbox")
	sb, err := sandbox.Start(ctx, sandbox.Options{
		Backend: o.Backend, Progress: o.Log, LogOutput: o.Log, Verbosity: max(0, o.Verbosity-1),
	})
	if err != nil {
		return causeOf(ctx, err)
	}
	defer func() { err = errors.Join(err, sb.Stop()) }()
	d.foreign = sb.Dir() == ""

	// The end of the control plane ends the demo immediately.
	audience := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-sb.Done():
			cancel(fmt.Errorf("the control plane has ended: %w", sb.Err()))
		case <-ctx.Done():
		}
	}()
	defer func() { err = causeOf(ctx, awaitControlPlaneEnd(ctx, err)) }()

	if err := d.printVersion(sb, o.Backend); err != nil {
		return err
	}
	published, discard, err := recordsDir(sb)
	if err != nil {
		return err
	}
	defer discard()
	if o.Replicas > 0 {
		return d.runReplicas(ctx, sb, published, o)
	}
	if err := d.startController(ctx, sb, published, o); err != nil {
		return err
	}
	defer d.controller.stop()
	if d.foreign {
		defer func() { err = errors.Join(err, d.tidyUp(ctx)) }()
	}

	if err := d.chapters(ctx); err != nil {
		return err
	}
	return d.finish(ctx, audience, sb, o)
}

// setLoggers sets the loggers of the process, which libraries use.
func setLoggers(logger logr.Logger) {
	log.SetLogger(logger)
	klog.SetLogger(logger)
}

// finish prints the summary. With --stay, it waits until the caller interrupts the demo.
func (d *demo) finish(ctx, audience context.Context, sb *sandbox.Sandbox, o Options) error {
	d.summary()
	if err := d.controller.explain(nil); err != nil {
		return err
	}
	if o.Stay {
		d.invite(sb.KubeconfigPath())
	}
	d.Print(fmt.Sprintf("demo: ok: %d websites ready, %d writes, 0 errors", len(d.sites), d.controller.traffic.Total()))
	if !o.Stay {
		return nil
	}
	select {
	case <-audience.Done():
		return nil
	case <-ctx.Done(): // also when the caller has canceled
		return context.Cause(ctx)
	case <-d.controller.ended.Done():
		return d.controller.end()
	}
}

func (d *demo) printVersion(sb *sandbox.Sandbox, backend sandbox.Backend) error {
	api, err := discovery.NewDiscoveryClientForConfig(sb.RESTConfig())
	if err != nil {
		return err
	}
	version, err := api.ServerVersion()
	if err != nil {
		return err
	}
	what := "Kubernetes"
	if backend == sandbox.Memory {
		what = "the API in memory of Kubernetes"
	}
	d.Done("%s %s is up at %s", what, version.GitVersion, sb.RESTConfig().Host)
	return nil
}

func (d *demo) chapters(ctx context.Context) error {
	for _, chapter := range []func(context.Context) error{
		d.apply, d.watchReady, d.changeTheme, d.deleteChildren, d.deleteSite,
	} {
		if err := d.chapter(ctx, chapter); err != nil {
			if err = awaitControlPlaneEnd(ctx, err); ctx.Err() != nil {
				return err // the errors of the controller are consequences of that
			}
			return d.controller.explain(err)
		}
	}
	return nil
}

// startController installs the kind, and starts its controller and the observer.
func (d *demo) startController(ctx context.Context, sb *sandbox.Sandbox, published string, o Options) error {
	d.Step("Start the controller")
	var namespaces []string
	if d.foreign {
		namespaces = d.namespaces()
	}
	scheme, err := d.connect(ctx, sb, published, namespaces)
	if err != nil {
		return err
	}
	if d.controller, err = start(sb.RESTConfig(), scheme, namespaces, published, o); err != nil {
		return err
	}
	d.Done("see why it reconciles each Website at %s", d.controller.console)
	d.Done("the kind Website is served, and its controller is running")
	return nil
}

// connect installs the kind, and starts the observer. It returns the scheme of the objects.
func (d *demo) connect(
	ctx context.Context, sb *sandbox.Sandbox, published string, namespaces []string,
) (*runtime.Scheme, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	if err := sb.InstallCRDs(ctx, website.CRDs()); err != nil {
		return nil, err
	}
	d.records = dns.NewDirectory(published)
	if d.client, err = client.New(sb.RESTConfig(), client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	d.observer, err = observe(ctx, sb.RESTConfig(), scheme, namespaces)
	return scheme, err
}

// newScheme returns the scheme of all objects of the demo.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), website.AddToScheme(scheme))
}

// recordsDir returns the directory in which the controller publishes records. It is inside the directory of the
// control plane, so it is removed with it, even if this process is killed.
func recordsDir(sb *sandbox.Sandbox) (dir string, discard func(), err error) {
	if sb.Dir() != "" {
		return filepath.Join(sb.Dir(), "records"), func() {}, nil
	}
	dir, err = os.MkdirTemp("", "trueup-records-*")
	return dir, func() { os.RemoveAll(dir) }, err
}

// chapter runs one part of the demo with its timeout, and ends it when the controller ends.
func (d *demo) chapter(ctx context.Context, run func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(d.controller.ended, func() { cancel(d.controller.end()) })
	defer stop()
	return causeOf(ctx, run(ctx))
}

// awaitControlPlaneEnd waits for a moment after an error that is not an answer of an API server, because the control
// plane may have ended.
func awaitControlPlaneEnd(ctx context.Context, err error) error {
	var answer apierrs.APIStatus
	if err != nil && !errors.As(err, &answer) {
		select {
		case <-ctx.Done():
		case <-time.After(3 * time.Second):
		}
	}
	return err
}

// causeOf replaces an error with the cause of a canceled context. Clients may report that cause as well, behind the
// request that they could not finish.
func causeOf(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
