// SPDX-License-Identifier: Apache-2.0

// Package demo shows the Website controller at work on a real Kubernetes API, and says that something is so only after
// it has seen it there: with clients and watches of its own, that share nothing with the controller.
//
// Run is the whole story; each chapter is a file of its own.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"trueup.dev/cmd/trueup/internal/manifests"
	"trueup.dev/cmd/trueup/internal/screen"
	"trueup.dev/examples/website"
	"trueup.dev/examples/website/dns"
	"trueup.dev/sandbox"
)

// Options say what is shown and how.
type Options struct {
	// Files are files and folders with the objects to apply. The default is the samples of the example.
	Files []string
	// Stay keeps everything running after the end, until the context is done.
	Stay bool
	// Timeout bounds each chapter.
	Timeout time.Duration
	// Verbosity 1 shows the logs of the controller, a higher one also those of the control plane.
	Verbosity int
	// Out receives the show.
	Out io.Writer
	// Log receives logs, and the progress of building and starting the control plane.
	Log io.Writer
}

// InputError is a mistake in the objects that were given.
type InputError struct{ err error }

func (e *InputError) Error() string { return e.err.Error() }
func (e *InputError) Unwrap() error { return e.err }

// demo is what the chapters share.
type demo struct {
	*screen.Screen
	client     client.Client // reads and writes past every cache
	observer   *observer
	records    dns.Provider // reads what the controller published, through files
	controller *running
	documents  []manifests.Document
	sites      []types.NamespacedName // in the order of the documents
	foreign    bool                   // the cluster is somebody's
	created    bool                   // in such a cluster: there may be something to take away
	timeout    time.Duration
	began      time.Time
	made       tally
}

// Run shows everything, and returns an error when something was not so within its time, or the controller reported an
// error. When the context is done it stops with the cause of that. In all cases nothing is left running.
func Run(ctx context.Context, o Options) (err error) {
	// The libraries below log to these, which are the process's.
	logger := logr.FromSlogHandler(handler(o))
	log.SetLogger(logger)
	klog.SetLogger(logger)

	d := &demo{Screen: screen.New(o.Out), timeout: o.Timeout, began: time.Now()}
	if err := d.load(o.Files); err != nil {
		return err
	}

	d.Step("Start the sandbox")
	sb, err := sandbox.Start(ctx, sandbox.Options{Progress: o.Log, LogOutput: o.Log, Verbosity: max(0, o.Verbosity-1)})
	if err != nil {
		return causeOf(ctx, err)
	}
	defer func() { err = errors.Join(err, sb.Stop()) }()
	d.foreign = sb.Dir() == ""

	// A control plane that ends by itself ends the show at once.
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
	defer func() { err = causeOf(ctx, afterDeath(ctx, err)) }()

	api, err := discovery.NewDiscoveryClientForConfig(sb.RESTConfig())
	if err != nil {
		return err
	}
	version, err := api.ServerVersion()
	if err != nil {
		return err
	}
	d.Done("Kubernetes %s is up at %s", version.GitVersion, sb.RESTConfig().Host)

	published, discard, err := recordsFolder(sb)
	if err != nil {
		return err
	}
	defer discard()
	if err := d.startController(ctx, sb, published, o); err != nil {
		return err
	}
	defer d.controller.stop()
	if d.foreign {
		defer func() { err = errors.Join(err, d.tidyUp(ctx)) }()
	}

	for _, chapter := range []func(context.Context) error{
		d.apply,
		d.watchReady,
		d.changeTheme,
		d.deleteChildren,
		d.deleteSite,
	} {
		if err := d.chapter(ctx, chapter); err != nil {
			if err = afterDeath(ctx, err); ctx.Err() != nil {
				return err // what the controller has to complain about comes from that
			}
			return d.controller.explain(err)
		}
	}
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
	case <-ctx.Done(): // also when the audience is gone
		return context.Cause(ctx)
	case <-d.controller.ended.Done():
		return d.controller.end()
	}
}

// startController serves the kind, and starts its controller and, apart from it, the observer.
func (d *demo) startController(ctx context.Context, sb *sandbox.Sandbox, published string, o Options) error {
	d.Step("Start the controller")
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), website.AddToScheme(scheme)); err != nil {
		return err
	}
	if err := sb.InstallCRDs(ctx, website.CRDs()); err != nil {
		return err
	}
	var namespaces []string
	if d.foreign {
		namespaces = d.namespaces()
	}
	var err error
	d.records = dns.NewDirectory(published)
	if d.client, err = client.New(sb.RESTConfig(), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if d.observer, err = observe(ctx, sb.RESTConfig(), scheme, namespaces); err != nil {
		return err
	}
	if d.controller, err = start(sb.RESTConfig(), scheme, namespaces, published, o); err != nil {
		return err
	}
	d.Done("the kind Website is served, and its controller is running")
	return nil
}

// recordsFolder is where the controller publishes. In the folder of the control plane it goes with that, even if this
// process is killed.
func recordsFolder(sb *sandbox.Sandbox) (folder string, discard func(), err error) {
	if sb.Dir() != "" {
		return filepath.Join(sb.Dir(), "records"), func() {}, nil
	}
	folder, err = os.MkdirTemp("", "trueup-records-*")
	return folder, func() { os.RemoveAll(folder) }, err
}

// chapter runs one part of the show within its time, and ends it when the controller ends.
func (d *demo) chapter(ctx context.Context, tell func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(d.controller.ended, func() { cancel(d.controller.end()) })
	defer stop()
	return causeOf(ctx, tell(ctx))
}

// afterDeath gives a connection that has failed the time to turn out as the end of the control plane.
func afterDeath(ctx context.Context, err error) error {
	var connection *url.Error
	if errors.As(err, &connection) {
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	return err
}

// causeOf replaces the error of something that a context has ended by the reason for that.
func causeOf(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)) {
		return context.Cause(ctx)
	}
	return err
}
