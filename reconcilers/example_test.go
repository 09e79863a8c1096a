// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1 "trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/tracker"
)

// printer prints events.
type printer struct{}

func (printer) Event(_ runtime.Object, eventtype, reason, message string) {
	fmt.Printf("event: %s %s: %s\n", eventtype, reason, message)
}

func (p printer) Eventf(obj runtime.Object, eventtype, reason, format string, args ...any) {
	p.Event(obj, eventtype, reason, fmt.Sprintf(format, args...))
}

func (p printer) AnnotatedEventf(
	obj runtime.Object, _ map[string]string, eventtype, reason, format string, args ...any,
) {
	p.Eventf(obj, eventtype, reason, format, args...)
}

// clusterWith returns the config for an in-memory cluster that prints its events.
func clusterWith(objects ...client.Object) reconcilers.Config {
	scheme := v1.NewScheme()
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1.Resource{}).Build()
	return reconcilers.Config{Client: c, APIReader: c, Recorder: printer{}, Tracker: tracker.New(scheme, time.Hour)}
}

// site returns the resource of the examples.
func site() *v1.Resource {
	return &v1.Resource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "blog", UID: "1"},
		Spec:       v1.ResourceSpec{Fields: map[string]string{"index.html": "Hello"}},
	}
}

// reconcile runs a subreconciler for the site.
func reconcile(cluster reconcilers.Config, reconciler reconcilers.SubReconciler[*v1.Resource]) {
	root := &reconcilers.ResourceReconciler[*v1.Resource]{Reconciler: reconciler, SkipStatusUpdate: true, Config: cluster}
	if _, err := root.Reconcile(context.Background(), requestFor(site())); err != nil {
		fmt.Println("error:", err)
	}
}

func requestFor(obj client.Object) reconcilers.Request {
	return reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(obj)}
}

func ExampleResourceReconciler() {
	cluster := clusterWith(site())
	reconciler := &reconcilers.ResourceReconciler[*v1.Resource]{
		Reconciler: &reconcilers.SyncReconciler[*v1.Resource]{
			Sync: func(ctx context.Context, resource *v1.Resource) error {
				resource.Status.MarkReady(ctx)
				return nil
			},
		},
		Config: cluster,
	}
	// In a program, the manager calls it after SetupWithManager.
	if _, err := reconciler.Reconcile(context.Background(), requestFor(site())); err != nil {
		fmt.Println(err)
	}

	stored := site()
	if err := cluster.Get(context.Background(), client.ObjectKeyFromObject(stored), stored); err != nil {
		fmt.Println(err)
	}
	fmt.Println("ready:", stored.Status.GetCondition("Ready").Status)
	// Output:
	// event: Normal StatusUpdated: Updated status
	// ready: True
}

func ExampleSyncReconciler() {
	records := map[string]string{}
	reconciler := &reconcilers.SyncReconciler[*v1.Resource]{
		Name: "Record",
		Sync: func(_ context.Context, resource *v1.Resource) error {
			records[resource.Name] = "192.0.2.1"
			return nil
		},
		Finalize: func(_ context.Context, resource *v1.Resource) error {
			delete(records, resource.Name)
			return nil
		},
	}
	resource := site()
	_, _ = reconciler.Reconcile(context.Background(), resource)
	fmt.Println(records)
	resource.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	_, _ = reconciler.Reconcile(context.Background(), resource)
	fmt.Println(records)
	// Output:
	// map[blog:192.0.2.1]
	// map[]
}

func ExampleSequence() {
	say := func(what string, result reconcilers.Result, err error) reconcilers.SubReconciler[*v1.Resource] {
		return &reconcilers.SyncReconciler[*v1.Resource]{
			SyncWithResult: func(context.Context, *v1.Resource) (reconcilers.Result, error) {
				fmt.Println(what)
				return result, err
			},
		}
	}
	reconciler := reconcilers.Sequence[*v1.Resource]{
		say("first", reconcilers.Result{RequeueAfter: time.Hour}, nil),
		say("second", reconcilers.Result{RequeueAfter: time.Minute}, nil),
		say("third", reconcilers.Result{}, reconcilers.ErrHaltSubReconcilers),
		say("never", reconcilers.Result{}, nil),
	}
	_, err := reconciler.Reconcile(context.Background(), site())
	fmt.Println(errors.Is(err, reconcilers.ErrHaltSubReconcilers))
	result, _ := reconciler[:2].Reconcile(context.Background(), site())
	fmt.Println("again in", result.RequeueAfter)
	// Output:
	// first
	// second
	// third
	// true
	// first
	// second
	// again in 1m0s
}

func ExampleWithFinalizer() {
	cluster := clusterWith(site())
	reconcile(cluster, &reconcilers.WithFinalizer[*v1.Resource]{
		Finalizer: "sites.example.com/record",
		Reconciler: &reconcilers.SyncReconciler[*v1.Resource]{
			Sync: func(_ context.Context, resource *v1.Resource) error {
				fmt.Println("create the record, held by", resource.Finalizers)
				return nil
			},
			Finalize: func(context.Context, *v1.Resource) error {
				fmt.Println("delete the record")
				return nil
			},
		},
	})
	if err := cluster.Delete(context.Background(), site()); err != nil {
		fmt.Println(err)
	}
	fmt.Println("deleted, but kept by the finalizer until the record is deleted")
	// Output:
	// event: Normal FinalizerPatched: Patched finalizer "sites.example.com/record"
	// create the record, held by [sites.example.com/record]
	// deleted, but kept by the finalizer until the record is deleted
}

func ExampleAddFinalizer() {
	reconcile(clusterWith(site()), &reconcilers.SyncReconciler[*v1.Resource]{
		Sync: func(ctx context.Context, resource *v1.Resource) error {
			return reconcilers.AddFinalizer(ctx, resource, "sites.example.com/bucket")
		},
		Finalize: func(ctx context.Context, resource *v1.Resource) error {
			return reconcilers.ClearFinalizer(ctx, resource, "sites.example.com/bucket")
		},
	})
	// Output:
	// event: Normal FinalizerPatched: Patched finalizer "sites.example.com/bucket"
}

func ExampleNewConfig() {
	run := func() error {
		mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Scheme: v1.NewScheme()})
		if err != nil {
			return err
		}
		reconciler := &reconcilers.ResourceReconciler[*v1.Resource]{
			Reconciler: reconcilers.Sequence[*v1.Resource]{},
			Config:     reconcilers.NewConfig(mgr, &v1.Resource{}, 10*time.Hour),
		}
		ctx := ctrl.SetupSignalHandler()
		if err := reconciler.SetupWithManager(ctx, mgr); err != nil {
			return err
		}
		return mgr.Start(ctx)
	}
	_ = run
}

// Events about failures are recorded, at most one an hour for each failure of an object, and no others.
func ExampleEventOptions() {
	setUp := func(mgr ctrl.Manager) reconcilers.Config {
		config := reconcilers.NewConfig(mgr, &v1.Resource{}, 10*time.Hour)
		config.Events = reconcilers.EventOptions{DisableNormal: true, Interval: time.Hour}
		return config
	}
	_ = setUp
}
