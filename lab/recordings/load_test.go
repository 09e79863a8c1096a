// SPDX-License-Identifier: Apache-2.0

package recordings

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/console"
	"trueup.dev/converge"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
	"trueup.dev/observe/recording"
	"trueup.dev/sandbox"
)

const (
	// manyCopies is the number of namespaces in which users perform the steps of a scenario at the same time.
	manyCopies = 20
	// workers is the number of requests that the controller reconciles at the same time.
	workers = 4
	// churn is the number of changes of metadata by another client after each step of the users.
	churn = 2
	// quietFor is how long nothing is reconciled in a namespace before users take their next step, and patience how long
	// they wait for that: reconcilers may loop. In tests of loops they wait until the loop is found.
	quietFor, patience, loopPatience = 200 * time.Millisecond, 3 * time.Second, time.Minute
)

// load is a controller of a scenario in a sandbox, with copies of its objects.
type load struct {
	*apitest.Env
	scenario   converge.Scenario
	recorder   *recorder.Recorder
	activity   *activity
	namespaces []string
	patience   time.Duration
	// started is closed when the controller has the objects that it watches.
	started chan struct{}
}

// runLoad runs the steps of a scenario in several namespaces at the same time, while another client changes the same
// objects and the network loses writes.
func runLoad(t *testing.T, s converge.Scenario, copies int, patience time.Duration) *load {
	t.Helper()
	l := &load{
		Env: apitest.New(t, s.Scheme, sandbox.TestOptions{CRDs: definitions(), Options: sandbox.Options{
			Controllers: []string{"garbage-collector-controller", "namespace-controller"}, DisablePods: true,
		}}),
		scenario: s, patience: patience, started: make(chan struct{}), activity: newActivity(),
		recorder: recorder.New(recorder.Options{Objects: true}),
	}
	namespaces := map[string]cache.Config{}
	for i := range copies {
		unique := l.Namespace[strings.LastIndex(l.Namespace, "-")+1:]
		name := fmt.Sprintf("load-%s-%d", unique, i)
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		l.Must(l.Create(t.Context(), namespace))
		t.Cleanup(func() { l.Must(l.Delete(context.Background(), namespace)) })
		l.namespaces = append(l.namespaces, name)
		namespaces[name] = cache.Config{}
	}
	for _, name := range l.namespaces {
		l.give(name)
	}
	config := l.RESTConfig()
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return &lossyNetwork{RoundTripper: inner} })
	stop := l.Manager(config, ctrl.Options{Cache: cache.Options{DefaultNamespaces: namespaces}}, l.setUp)
	<-l.started
	var users sync.WaitGroup
	for _, name := range l.namespaces {
		users.Go(func() {
			if err := l.use(t.Context(), name); err != nil {
				t.Errorf("users of namespace %s: %v", name, err)
			}
		})
	}
	users.Wait()
	stop()
	return l
}

// give creates the given objects of the scenario in a namespace.
func (l *load) give(namespace string) {
	l.Helper()
	c := movedClient{l.Client, namespace}
	for _, given := range l.scenario.Given {
		obj := given.DeepCopyObject().(client.Object)
		if err := c.Create(l.Context(), obj); !apierrs.IsAlreadyExists(err) { // a cluster-scoped object is given once
			l.Must(err)
		}
		withStatus := given.DeepCopyObject().(client.Object)
		withStatus.SetNamespace(obj.GetNamespace())
		withStatus.SetResourceVersion(obj.GetResourceVersion())
		err := l.Client.Status().Update(l.Context(), withStatus)
		if !apierrs.IsNotFound(err) { // the kind has no status
			l.Must(err)
		}
	}
}

// setUp adds the observed controller and the other controllers of the scenario to a manager.
func (l *load) setUp(ctx context.Context, mgr ctrl.Manager) error {
	for _, watched := range append([]client.Object{l.scenario.For}, l.scenario.Owns...) {
		if _, err := mgr.GetCache().GetInformer(ctx, watched, cache.BlockUntilSynced(false)); err != nil {
			return err
		}
	}
	err := mgr.Add(manager.RunnableFunc(func(context.Context) error { // runs when caches are filled
		close(l.started)
		return nil
	}))
	if err != nil {
		return err
	}
	observe.Of(mgr).Add(l.activity)
	observe.Of(mgr).Add(l.recorder)
	for _, actor := range l.scenario.World {
		b := builder.ControllerManagedBy(mgr).For(actor.For).Named(fmt.Sprintf("%T", actor.For)[1:] + " actor")
		for _, owned := range actor.Owns {
			b.Owns(owned)
		}
		if err := b.Complete(&actorReconciler{client.WithFieldOwner(l.Client, actor.Name), actor}); err != nil {
			return err
		}
	}
	env := converge.Env{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Cache: mgr.GetCache(), Scheme: mgr.GetScheme(),
		Recorder: mgr.GetEventRecorderFor("corpus"), //nolint:staticcheck // it is the type of the field
		Manager:  mgr,
	}
	return SetUp(mgr, l.scenario, env, controller.Options{MaxConcurrentReconciles: workers})
}

// actorReconciler runs an actor of a scenario.
type actorReconciler struct {
	client.Client
	actor converge.Actor
}

func (r *actorReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	obj := r.actor.For.DeepCopyObject().(client.Object)
	if err := r.Get(ctx, req.NamespacedName, obj); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	return reconcile.Result{}, client.IgnoreNotFound(r.actor.Act(ctx, r.Client, obj))
}

// use performs the steps of the users in a namespace.
func (l *load) use(ctx context.Context, namespace string) error {
	wait := func(ctx context.Context, _ time.Duration) error { // hours cannot pass here
		l.disturb(ctx, namespace)
		return l.settle(ctx, namespace)
	}
	steps := l.scenario.Steps
	if len(steps) == 0 { // the default
		steps = []converge.Step{converge.Settle()}
		for _, given := range l.scenario.Given {
			if sameKind(given, l.scenario.For) {
				steps = append(steps, converge.Delete(given))
			}
		}
		steps = append(steps, converge.Settle())
	}
	c := movedClient{l.Client, namespace}
	for _, step := range steps {
		l.activity.note(namespace, 1)
		err := step.Perform(ctx, c, func(ctx context.Context, d time.Duration) error {
			l.activity.note(namespace, -1)
			defer l.activity.note(namespace, 1)
			return wait(ctx, d)
		})
		l.activity.note(namespace, -1)
		if err != nil && !apierrs.IsConflict(err) {
			return err
		}
	}
	return nil
}

// disturb annotates objects of the scenario in a namespace. It leaves out objects with an owner: the test of a
// recording that begins with an annotated child expects the annotation on a child that is created again, too.
func (l *load) disturb(ctx context.Context, namespace string) {
	kinds := append([]client.Object{l.scenario.For}, l.scenario.Owns...)
	for n := range churn {
		kind, err := apiutil.GVKForObject(kinds[n%len(kinds)], l.scenario.Scheme)
		l.Must(err)
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if err := l.List(ctx, list, client.InNamespace(namespace), client.Limit(1)); err != nil {
			continue
		}
		for i := range list.Items {
			if len(list.Items[i].OwnerReferences) > 0 {
				continue
			}
			patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil,
				`{"metadata":{"annotations":{"churn":"%d"}}}`, time.Now().UnixNano()))
			_ = l.Patch(ctx, &list.Items[i], patch) // another client may have deleted it
		}
	}
}

// settle waits until nothing is reconciled in a namespace.
func (l *load) settle(ctx context.Context, namespace string) error {
	ticker, deadline := time.NewTicker(20*time.Millisecond), time.After(l.patience)
	defer ticker.Stop()
	for !l.activity.quiet(namespace, quietFor) {
		select {
		case <-ticker.C:
		case <-deadline:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// record writes the recording of the object in most trouble to a file, as "trueup record" does.
func (l *load) record(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(console.Handler(l.recorder))
	defer server.Close()
	objects, _ := l.recorder.Objects(recorder.Query{})
	worst := -1
	var found recording.Recording
	for i, o := range objects {
		response, err := server.Client().Get(server.URL + "/" + console.RecordingPath(o))
		l.Must(err)
		r, err := recording.Read(response.Body)
		_ = response.Body.Close()
		l.Must(err)
		trouble := troubleIn(r)
		if o.State.IsTrouble() {
			trouble += 1000 - i
		}
		if trouble > worst {
			worst, found = trouble, r
		}
	}
	file := filepath.Join(t.TempDir(), console.FileName(found))
	f, err := os.Create(file)
	l.Must(err)
	l.Must(recording.Write(f, found))
	l.Must(f.Close())
	return file
}

// troubleIn counts the calls of a recording that failed or had an old answer.
func troubleIn(r recording.Recording) (n int) {
	for _, run := range r.Runs {
		for _, call := range run.Calls {
			if call.Error != nil || len(call.Stale) > 0 {
				n++
			}
		}
	}
	return n
}

func sameKind(a, b client.Object) bool { return fmt.Sprintf("%T", a) == fmt.Sprintf("%T", b) }
