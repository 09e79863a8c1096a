// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
	"trueup.dev/internal/sharder"
	"trueup.dev/reconcilers"
	"trueup.dev/shards"
)

// The ring of the replicas, how long a Lease lasts, and how often the sharder looks at all of them.
const (
	ring            = "ring"
	leaseDuration   = 2 * time.Hour
	sharderInterval = time.Hour
)

// parents are the names of the objects that are divided. The first replica keeps "x", and hands over "z" to the second
// one. If there is a third one, the second one hands over "z" to it.
var parents = []string{"x", "z"}

// replicaOf is a replica in a scenario.
type replicaOf struct {
	// setUp adds its controllers.
	setUp func(ctrl.Manager, *shards.Shard) error
	// change changes the options of its manager. Optional.
	change func(*shards.Shard, *ctrl.Options)
}

// program returns the program of a replica.
func (r replicaOf) program(name string) converge.Program {
	return converge.Program{
		Name: name,
		Assigned: func(obj client.Object) bool {
			return obj.GetLabels()[shards.ShardLabel(ring)] == name
		},
		Setup: func(mgr ctrl.Manager) error {
			shard, err := shards.New(shards.Options{
				Ring: ring, Shard: name, Namespace: metav1.NamespaceDefault,
				Kinds: []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}},
			})
			if err != nil {
				return err
			}
			options, err := shard.ManagerOptions(mgr.GetConfig(), ctrl.Options{
				Scheme: mgr.GetScheme(), Logger: mgr.GetLogger(), LeaseDuration: new(leaseDuration),
				RenewDeadline: new(leaseDuration * 2 / 3), RetryPeriod: new(leaseDuration * 5 / 12),
			})
			if err != nil {
				return err
			}
			if r.change != nil {
				r.change(shard, &options)
			}
			if err := converge.ApplyOptions(mgr, options); err != nil {
				return err
			}
			return r.setUp(mgr, shard)
		},
	}
}

// setUpSharder adds a controller that assigns objects after each change of a Lease or of an object, and at intervals.
func setUpSharder(interval time.Duration) func(ctrl.Manager) error {
	return func(mgr ctrl.Manager) error {
		s := &sharder.Sharder{
			Client: mgr.GetClient(), Ring: ring, Namespace: metav1.NamespaceDefault,
			Resources: []sharder.Resource{{
				Kind:       corev1.SchemeGroupVersion.WithKind("ConfigMap"),
				Controlled: []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("Secret")},
			}},
		}
		all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
			return []reconcile.Request{{}}
		})
		holder := func(obj client.Object) string {
			if holder := obj.(*coordinationv1.Lease).Spec.HolderIdentity; holder != nil {
				return *holder
			}
			return ""
		}
		otherHolder := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
			return holder(e.ObjectOld) != holder(e.ObjectNew)
		}}
		return ctrl.NewControllerManagedBy(mgr).Named("sharder").
			Watches(&coordinationv1.Lease{}, all, builder.WithPredicates(otherHolder)).
			Watches(&corev1.ConfigMap{}, all).Watches(&corev1.Secret{}, all).
			Complete(reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{RequeueAfter: interval}, s.Round(ctx)
			}))
	}
}

// replicaScenario has a sharder, and some replicas that start one after the other: each one that starts gets its share
// of those that run. It injects all faults, and pauses processes for three times as long as their Leases last.
func replicaScenario(r replicaOf, names ...string) converge.Scenario {
	s := converge.Scenario{
		Scheme: clientgoscheme.Scheme, For: &corev1.ConfigMap{}, Setup: setUpSharder(sharderInterval),
		Uncached: []client.Object{&coordinationv1.Lease{}, &corev1.ConfigMap{}, &corev1.Secret{}},
		Desired:  func(state converge.State) error { return assignedTo(state, names) },
		With:     []converge.Fault{converge.FaultPause},
	}
	for _, name := range parents {
		s.Given = append(s.Given, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}, Data: map[string]string{"n": "1"},
		})
	}
	s.Steps = converge.Steps(converge.Settle(), converge.Change(s.Given[1].(*corev1.ConfigMap), func(m *corev1.ConfigMap) {
		m.Data["n"] = "2"
	}), converge.Settle())
	for _, name := range names {
		s.Programs = append(s.Programs, r.program(name))
	}
	return s
}

// assignedTo checks that each parent is assigned to the replica that rendezvous hashing chooses among all, which has
// reconciled it.
func assignedTo(state converge.State, names []string) error {
	among := map[string]bool{}
	for _, name := range names {
		among[name] = true
	}
	for _, name := range parents {
		parent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
		if !state.Get(parent) {
			return fmt.Errorf("ConfigMap %s does not exist", name)
		}
		want := sharder.Rendezvous(name, among)
		if got := parent.Labels[shards.ShardLabel(ring)]; got != want {
			return fmt.Errorf("ConfigMap %s is assigned to %q, want %q", name, got, want)
		}
		if _, drains := parent.Labels[shards.DrainLabel(ring)]; drains {
			return fmt.Errorf("ConfigMap %s has the drain label", name)
		}
		n, by := parent.Annotations["n"], parent.Annotations["by"]
		child := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
		if state.Get(child) {
			n, by = string(child.Data["n"]), string(child.Data["by"])
		}
		if n != parent.Data["n"] || by != want {
			return fmt.Errorf("ConfigMap %s was reconciled by %q with n=%q, want %q and %q", name, by, n, want, parent.Data["n"])
		}
	}
	return nil
}

// tree has the reconcilers of this module, which copy the data of each ConfigMap to a Secret.
var tree = replicaOf{setUp: func(mgr ctrl.Manager, shard *shards.Shard) error {
	config := reconcilers.NewConfig(mgr, nil, 0)
	config.Shard = shard
	return (&reconcilers.ResourceReconciler[*corev1.ConfigMap]{
		SkipStatusUpdate: true, Config: config,
		Reconciler: &reconcilers.ChildReconciler[*corev1.ConfigMap, *corev1.Secret, *corev1.SecretList]{
			DesiredChild: func(_ context.Context, parent *corev1.ConfigMap) (*corev1.Secret, error) {
				return &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: parent.Name},
					Data:       map[string][]byte{"n": []byte(parent.Data["n"]), "by": []byte(shard.Name())},
				}, nil
			},
			MergeBeforeUpdate:          func(current, desired *corev1.Secret) { current.Data = desired.Data },
			ReflectChildStatusOnParent: func(context.Context, *corev1.ConfigMap, *corev1.Secret, error) {},
		},
	}).SetupWithManager(context.Background(), mgr)
}}

// plain uses controller-runtime alone. No resource version protects its writes.
var plain = replicaOf{setUp: func(mgr ctrl.Manager, shard *shards.Shard) error {
	return setUpPlain(mgr, shard, shard.Reconciler(mgr.GetClient(), &corev1.ConfigMap{}, annotator(mgr, shard)))
}}

func setUpPlain(mgr ctrl.Manager, shard *shards.Shard, r reconcile.Reconciler) error {
	return ctrl.NewControllerManagedBy(mgr).Named(shard.Name()).
		For(&corev1.ConfigMap{}, builder.WithPredicates(shard.Predicate())).Complete(r)
}

// annotator returns a reconciler that annotates each ConfigMap with its data, and with the name of the shard.
func annotator(mgr ctrl.Manager, shard *shards.Shard) reconcile.Reconciler {
	c := mgr.GetClient()
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		parent := &corev1.ConfigMap{}
		if err := c.Get(ctx, req.NamespacedName, parent); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		if parent.Annotations["n"] == parent.Data["n"] && parent.Annotations["by"] == shard.Name() {
			return reconcile.Result{}, nil
		}
		before := parent.DeepCopy()
		metav1.SetMetaDataAnnotation(&parent.ObjectMeta, "n", parent.Data["n"])
		metav1.SetMetaDataAnnotation(&parent.ObjectMeta, "by", shard.Name())
		return reconcile.Result{}, c.Patch(ctx, parent, client.MergeFrom(before))
	})
}

// TestShards proves that replicas hand over objects, and that one that is paused, or has lost its Lease, does not write
// what another one has, whatever fails.
func TestShards(t *testing.T) {
	for name, s := range map[string]converge.Scenario{
		"two that use controller-runtime":   replicaScenario(plain, "a", "b"),
		"two with trees":                    replicaScenario(tree, "a", "b"),
		"three that use controller-runtime": replicaScenario(plain, "a", "b", "c"),
		"three with trees":                  replicaScenario(tree, "a", "b", "c"),
	} {
		t.Run(name, func(t *testing.T) {
			if len(s.Programs) > 2 && testing.Short() {
				t.Skip("two replicas are enough for most mistakes")
			}
			proveWith(t, s, 500)
		})
	}
}

// keepsLabel is a client that removes only the drain label when the shard releases an object.
type keepsLabel struct {
	client.Client

	shard *shards.Shard
}

func (c keepsLabel) Patch(ctx context.Context, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
	data, err := p.Data(obj)
	if err != nil {
		return err
	}
	removed := fmt.Appendf(nil, "%q:null", c.shard.Label())
	kept := fmt.Appendf(nil, "%q:%q", c.shard.Label(), c.shard.Name())
	return c.Client.Patch(ctx, obj, client.RawPatch(p.Type(), bytes.Replace(data, removed, kept, 1)), opts...)
}

// withoutOthers are all faults but FaultPause. The mistakes below need no other one.
var withoutOthers = func() map[converge.Fault]string {
	without := map[converge.Fault]string{}
	for _, fault := range []converge.Fault{
		converge.FaultCrashBefore, converge.FaultCrashAfter, converge.FaultTimeoutApplied, converge.FaultTimeoutLost,
		converge.FaultTooManyRequests, converge.FaultServerError, converge.FaultConflict, converge.FaultHandOver,
		converge.FaultLagRead, converge.FaultLagReconcile, converge.FaultLagLong, converge.FaultRelist,
		converge.FaultResync, converge.FaultListOrder, converge.FaultRestart, converge.FaultMeanwhile,
		converge.FaultOvertaken, converge.FaultExists, converge.FaultTaken, converge.FaultDeleted,
		converge.FaultRecreated, converge.FaultChildDeleted,
	} {
		without[fault] = "the case is about pauses"
	}
	return without
}()

// TestShards_findsMistakes breaks one part of the protocol at a time.
func TestShards_findsMistakes(t *testing.T) {
	for name, tc := range map[string]struct {
		setUp   func(ctrl.Manager, *shards.Shard) error
		change  func(*shards.Shard, *ctrl.Options)
		sharder time.Duration
		want    converge.Cause
	}{
		"a release that only removes the drain label": {
			change: func(shard *shards.Shard, options *ctrl.Options) {
				fenced := options.NewClient
				options.NewClient = func(config *rest.Config, of client.Options) (client.Client, error) {
					c, err := fenced(config, of)
					return keepsLabel{c, shard}, err
				}
			},
			want: converge.CauseFight,
		},
		"a replica that ignores the drain label": {
			setUp: func(mgr ctrl.Manager, shard *shards.Shard) error {
				return setUpPlain(mgr, shard, annotator(mgr, shard))
			},
			want: converge.CauseNotDesired,
		},
		"a replica that ignores the label of the shard": {
			setUp: func(mgr ctrl.Manager, shard *shards.Shard) error {
				return setUpPlain(mgr, shard, annotator(mgr, shard))
			},
			change: func(_ *shards.Shard, options *ctrl.Options) { options.Cache.ByObject = nil },
			want:   converge.CauseNotAssigned,
		},
		"a replica that writes after its Lease has expired": {
			change: func(_ *shards.Shard, options *ctrl.Options) { options.NewClient = nil },
			want:   converge.CauseNotAssigned,
		},
		"a sharder that ignores Leases that expire": {sharder: -1, want: converge.CauseUnassigned},
	} {
		t.Run(name, func(t *testing.T) {
			r := plain
			if r.change = tc.change; tc.setUp != nil {
				r.setUp = tc.setUp
			}
			s := replicaScenario(r, "a", "b")
			s.Without = withoutOthers
			if tc.sharder != 0 {
				s.Setup = setUpSharder(tc.sharder)
			}
			report, err := converge.Check(t, s, converge.DefaultOptions())
			switch {
			case err != nil:
				t.Fatal(err)
			case report.Failure == nil:
				t.Fatalf("nothing was found: %s", report.Certificate)
			case report.Failure.Violation.Cause != tc.want:
				t.Fatalf("found %q, want %q:\n%s", report.Failure.Violation.Cause, tc.want, report.Failure)
			}
		})
	}
}
