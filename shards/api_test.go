// SPDX-License-Identifier: Apache-2.0

package shards_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
	"trueup.dev/sandbox"
	"trueup.dev/shards"
)

const (
	ring          = "test"
	leaseDuration = 3 * time.Second
)

func TestMain(m *testing.M) {
	if name := os.Getenv(replicaVariable); name != "" {
		if err := runReplica(name); err != nil {
			fmt.Fprintf(os.Stderr, "replica %s: %v\n", name, err)
			os.Exit(1)
		}
		return
	}
	apitest.Main(m)
}

// newShard returns a shard of the ring of the tests, with short Leases, and the options of its manager.
func newShard(namespace, name string) (*shards.Shard, ctrl.Options, error) {
	shard, err := shards.New(shards.Options{
		Ring: ring, Shard: name, Namespace: namespace,
		Kinds: []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.ServiceAccount{}},
	})
	options := ctrl.Options{}
	setLease(&options, leaseDuration)
	return shard, options, err
}

func setLease(o *ctrl.Options, lasts time.Duration) {
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = new(lasts), new(lasts*2/3), new(lasts/6)
}

// shardA returns the shard "a" of a test, and the options of its manager.
func shardA(e *apitest.Env) (*shards.Shard, ctrl.Options) {
	e.Helper()
	shard, options, err := newShard(e.Namespace, "a")
	e.Must(err)
	options, err = shard.ManagerOptions(e.RESTConfig(), options)
	e.Must(err)
	return shard, options
}

// setUpTree adds a controller that copies the data of each ConfigMap to a Secret, with the name of the shard. The
// predicate of its user only passes changes of the data.
func setUpTree(ctx context.Context, mgr ctrl.Manager, shard *shards.Shard) error {
	return setUpTreeWith(ctx, mgr, shard, &reconcilers.UpdatingObjectManager[*corev1.Secret]{
		MergeBeforeUpdate: func(current, desired *corev1.Secret) {
			current.Labels = desired.Labels // also removes the label of the shard
			current.Data = desired.Data
		},
	})
}

func setUpTreeWith(
	ctx context.Context, mgr ctrl.Manager, shard *shards.Shard, manager reconcilers.ObjectManager[*corev1.Secret],
) error {
	config := reconcilers.NewConfig(mgr, nil, 0)
	config.Shard = shard
	onlyData := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*corev1.ConfigMap), e.ObjectNew.(*corev1.ConfigMap)
		return !cmp.Equal(before.Data, after.Data)
	}}
	return (&reconcilers.ResourceReconciler[*corev1.ConfigMap]{
		SetupForOptions: []builder.ForOption{builder.WithPredicates(onlyData)}, SkipStatusUpdate: true,
		Reconciler: &reconcilers.ChildReconciler[*corev1.ConfigMap, *corev1.Secret, *corev1.SecretList]{
			DesiredChild: func(_ context.Context, parent *corev1.ConfigMap) (*corev1.Secret, error) {
				return &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{
						Namespace: parent.Namespace, Name: parent.Name, Labels: map[string]string{"copy-of": parent.Name},
					},
					Data: map[string][]byte{"n": []byte(parent.Data["n"]), "by": []byte(shard.Name())},
				}, nil
			},
			ChildObjectManager:         manager,
			ReflectChildStatusOnParent: func(context.Context, *corev1.ConfigMap, *corev1.Secret, error) {},
		},
		Config: config,
	}).SetupWithManager(ctx, mgr)
}

// journal records the calls of a watcher.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(line string, account *corev1.ServiceAccount) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if line += " " + account.Name; !slices.Contains(j.lines, line) && account.Name != "default" {
		j.lines = append(j.lines, line)
	}
	return nil
}

func (j *journal) wait(e *apitest.Env, want ...string) {
	e.Helper()
	e.Eventually(func() error {
		j.mu.Lock()
		defer j.mu.Unlock()
		if diff := cmp.Diff(want, j.lines); diff != "" {
			return fmt.Errorf("calls of the watcher (-want +got):\n%s", diff)
		}
		return nil
	})
}

func (j *journal) Add(_ context.Context, a *corev1.ServiceAccount) error { return j.add("added", a) }

func (j *journal) Update(_ context.Context, _, _ *corev1.ServiceAccount) error { return nil }

func (j *journal) Delete(_ context.Context, a *corev1.ServiceAccount) error {
	return j.add("deleted", a)
}

func (j *journal) setUp(ctx context.Context, mgr ctrl.Manager, shard *shards.Shard) error {
	config := reconcilers.NewConfig(mgr, nil, 0)
	config.Shard = shard
	return (&operator.Controller[*corev1.ServiceAccount]{
		Handlers: []reconcilers.SubReconciler[*corev1.ServiceAccount]{
			operator.WatcherReconciler[*corev1.ServiceAccount](j),
		},
		SkipStatusUpdate: true, Config: config,
	}).SetupWithManager(ctx, mgr)
}

// label changes the labels of an object with a merge patch. A null removes a label.
func label(e *apitest.Env, obj client.Object, labels string) {
	e.Helper()
	obj.SetNamespace(e.Namespace)
	patch := fmt.Sprintf(`{"metadata":{"labels":{%s}}}`, strings.NewReplacer(
		"SHARD", shards.ShardLabel(ring), "DRAIN", shards.DrainLabel(ring)).Replace(labels))
	e.Must(e.Patch(e.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(patch))))
}

func named[T client.Object](obj T, name string) T {
	obj.SetName(name)
	return obj
}

func configMap(name, shard string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{shards.ShardLabel(ring): shard}},
		Data:       map[string]string{"n": "1"},
	}
}

// copied waits until the copy of a ConfigMap has the data and the label of a shard.
func copied(e *apitest.Env, name, n string) {
	e.Helper()
	copiedFor(e, name, n, "a")
}

func copiedFor(e *apitest.Env, name, n, shard string) {
	e.Helper()
	apitest.Until(e, named(&corev1.Secret{}, name), func(s *corev1.Secret) error {
		if got := string(s.Data["n"]); got != n {
			return fmt.Errorf("n=%s, want %s", got, n)
		}
		if s.Labels[shards.ShardLabel(ring)] != shard || s.Labels["copy-of"] != name {
			return fmt.Errorf("labels %v", s.Labels)
		}
		return nil
	})
}

// One replica, with a user who does what the sharder does.
func TestShard_OfATreeAndAWatcher(t *testing.T) {
	t.Parallel()
	e := apitest.New(t, nil, sandbox.TestOptions{})
	shard, options := shardA(e)
	seen := &journal{}
	stop := e.Manager(e.RESTConfig(), options, func(ctx context.Context, mgr ctrl.Manager) error {
		return errors.Join(setUpTree(ctx, mgr, shard), seen.setUp(ctx, mgr, shard))
	})
	lease := named(&coordinationv1.Lease{}, "a")
	apitest.Until(e, lease, func(l *coordinationv1.Lease) error {
		if *l.Spec.HolderIdentity != "a" || l.Labels[shards.RingLabel] != ring {
			return fmt.Errorf("holder %s, labels %v", *l.Spec.HolderIdentity, l.Labels)
		}
		return nil
	})

	// The child gets the label when it is created, and keeps it although MergeBeforeUpdate replaces all labels.
	e.Add(configMap("ours", "a"), configMap("another", "b"))
	copied(e, "ours", "1")
	apitest.Change(e, named(&corev1.ConfigMap{}, "ours"), func(c *corev1.ConfigMap) { c.Data["n"] = "2" })
	copied(e, "ours", "2")

	// A child without the label is not in the cache. It is neither created again nor left alone.
	label(e, named(&corev1.Secret{}, "ours"), `"SHARD":null`)
	copied(e, "ours", "2")
	apitest.Change(e, named(&corev1.ConfigMap{}, "ours"), func(c *corev1.ConfigMap) { c.Data["n"] = "3" })
	copied(e, "ours", "3")

	// The predicate does not hold back the drain label. Afterwards, only the next shard reconciles the object.
	label(e, named(&corev1.ConfigMap{}, "ours"), `"DRAIN":"true"`)
	apitest.Until(e, named(&corev1.ConfigMap{}, "ours"), func(c *corev1.ConfigMap) error {
		if len(c.Labels) > 0 {
			return fmt.Errorf("labels %v", c.Labels)
		}
		return nil
	})
	apitest.Change(e, named(&corev1.ConfigMap{}, "ours"), func(c *corev1.ConfigMap) { c.Data["n"] = "4" })
	e.Add(configMap("later", "a"))
	copied(e, "later", "1")
	copied(e, "ours", "3")
	label(e, named(&corev1.ConfigMap{}, "ours"), `"SHARD":"a"`)
	copied(e, "ours", "4")
	if err := e.Read(named(&corev1.Secret{}, "another")); err == nil {
		t.Error("the object of another shard was reconciled")
	}

	// A watcher is told about deletions, and not about objects that have moved.
	for _, name := range []string{"moves", "stays"} {
		e.Add(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{shards.ShardLabel(ring): "a"},
		}})
	}
	seen.wait(e, "added moves", "added stays")
	label(e, named(&corev1.ServiceAccount{}, "moves"), `"SHARD":"b"`)
	label(e, named(&corev1.ServiceAccount{}, "stays"), `"DRAIN":"true"`)
	apitest.Until(e, named(&corev1.ServiceAccount{}, "stays"), func(a *corev1.ServiceAccount) error {
		if len(a.Labels) > 0 {
			return fmt.Errorf("labels %v", a.Labels)
		}
		return nil
	})
	label(e, named(&corev1.ServiceAccount{}, "stays"), `"SHARD":"a","back":"true"`)
	last := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Name: "last", Labels: map[string]string{shards.ShardLabel(ring): "a"},
	}}
	e.Add(last)
	seen.wait(e, "added moves", "added stays", "added last")
	e.Must(e.Delete(e.Context(), last))
	seen.wait(e, "added moves", "added stays", "added last", "deleted last")

	stop()
	apitest.Until(e, lease, func(l *coordinationv1.Lease) error {
		if *l.Spec.HolderIdentity != "" {
			return fmt.Errorf("the Lease is still held by %q", *l.Spec.HolderIdentity)
		}
		return nil
	})
	if !shard.Lapsed() {
		t.Error("the shard still believes that it holds its Lease")
	}
	noWarnings(e)
}

func noWarnings(e *apitest.Env) {
	e.Helper()
	events := &corev1.EventList{}
	e.Must(e.List(e.Context(), events, client.InNamespace(e.Namespace)))
	for _, event := range events.Items {
		if event.Type == corev1.EventTypeWarning {
			e.Errorf("event %s: %s", event.Reason, event.Message)
		}
	}
}

// With server-side apply, a label that the sharder has changed is neither a conflict nor changed back.
func TestShard_OfATreeThatApplies(t *testing.T) {
	t.Parallel()
	e := apitest.New(t, nil, sandbox.TestOptions{})
	shard, options := shardA(e)
	stop := e.Manager(e.RESTConfig(), options, func(ctx context.Context, mgr ctrl.Manager) error {
		return setUpTreeWith(ctx, mgr, shard, &reconcilers.ApplyingObjectManager[*corev1.Secret]{})
	})
	e.Add(configMap("ours", "a"))
	copied(e, "ours", "1")
	label(e, named(&corev1.Secret{}, "ours"), `"SHARD":"b"`) // it moves before its parent
	apitest.Change(e, named(&corev1.ConfigMap{}, "ours"), func(c *corev1.ConfigMap) { c.Data["n"] = "2" })
	copiedFor(e, "ours", "2", "b")
	label(e, named(&corev1.Secret{}, "ours"), `"SHARD":"a"`)
	apitest.Change(e, named(&corev1.ConfigMap{}, "ours"), func(c *corev1.ConfigMap) { c.Data["n"] = "3" })
	copied(e, "ours", "3")
	label(e, named(&corev1.Secret{}, "ours"), `"SHARD":null`)
	copied(e, "ours", "3")
	stop()
	noWarnings(e)
}

// A controller of controller-runtime alone.
func TestShard_OfAPlainController(t *testing.T) {
	t.Parallel()
	e := apitest.New(t, nil, sandbox.TestOptions{})
	shard, options := shardA(e)
	e.Manager(e.RESTConfig(), options, func(_ context.Context, mgr ctrl.Manager) error {
		never := predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetLabels()["wanted"] != "" })
		return ctrl.NewControllerManagedBy(mgr).
			For(&corev1.ConfigMap{}, builder.WithPredicates(shard.Predicate(never))).
			Complete(shard.Reconciler(mgr.GetClient(), &corev1.ConfigMap{}, reconcile.Func(
				func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
					patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"seen":"true"}}`))
					seen := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name}}
					return reconcile.Result{}, mgr.GetClient().Patch(ctx, seen, patch)
				})))
	})
	for _, name := range []string{"drained", "last"} {
		e.Add(configMap(name, "a"))
	}
	label(e, named(&corev1.ConfigMap{}, "drained"), `"DRAIN":"true"`)
	apitest.Until(e, named(&corev1.ConfigMap{}, "drained"), func(c *corev1.ConfigMap) error {
		if len(c.Labels) > 0 {
			return fmt.Errorf("labels %v", c.Labels)
		}
		return nil
	})
	label(e, named(&corev1.ConfigMap{}, "drained"), `"wanted":"true"`)
	label(e, named(&corev1.ConfigMap{}, "last"), `"wanted":"true"`)
	apitest.Until(e, named(&corev1.ConfigMap{}, "last"), func(c *corev1.ConfigMap) error {
		if c.Data["seen"] == "" {
			return errors.New("not reconciled yet")
		}
		return nil
	})
	drained := named(&corev1.ConfigMap{}, "drained")
	e.Must(e.Read(drained))
	if drained.Data["seen"] != "" {
		t.Error("a drained object was reconciled")
	}
}
