// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

func ExampleAggregateReconciler() {
	cluster := clusterWith(site())
	names := reconcilers.NewStasher[[]string]("example.com/names")
	reconciler := &reconcilers.AggregateReconciler[*corev1.ConfigMap]{
		Request: reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "directory"}},
		Reconciler: &reconcilers.SyncReconciler[*corev1.ConfigMap]{
			Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
				bldr.Watches(&v1.Resource{}, reconcilers.EnqueueTracked(ctx))
				return nil
			},
			Sync: func(ctx context.Context, _ *corev1.ConfigMap) error {
				sites := &v1.ResourceList{}
				if err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndList(ctx, sites, client.InNamespace("default")); err != nil {
					return err
				}
				list := []string{}
				for _, site := range sites.Items {
					list = append(list, site.Name)
				}
				names.Store(ctx, list)
				return nil
			},
		},
		DesiredResource: func(ctx context.Context, resource *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			list := names.RetrieveOrDie(ctx)
			if len(list) == 0 {
				return nil, nil
			}
			resource.Data = map[string]string{"sites": fmt.Sprint(list)}
			return resource, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) {
			current.Data = desired.Data
		},
		Config: cluster,
	}
	// In a program, the manager calls it after SetupWithManager.
	if _, err := reconciler.Reconcile(context.Background(), reconciler.Request); err != nil {
		fmt.Println(err)
	}
	directory := &corev1.ConfigMap{}
	if err := cluster.Get(context.Background(), reconciler.Request.NamespacedName, directory); err != nil {
		fmt.Println(err)
	}
	fmt.Println(directory.Data["sites"])
	// Output:
	// event: Normal Created: Created ConfigMap "directory"
	// [blog]
}

func ExampleCastResource() {
	// This reconciler works for every kind of resource with the field spec.fields.
	reconciler := &reconcilers.SyncReconciler[*v1.Duck]{
		Sync: func(_ context.Context, duck *v1.Duck) error {
			fmt.Printf("%s %s says %s\n", duck.Kind, duck.Name, duck.Spec.Fields["index.html"])
			duck.Status.Fields = map[string]string{"seen": "true"}
			return nil
		},
	}
	reconcile(clusterWith(site()), reconcilers.Sequence[*v1.Resource]{
		&reconcilers.CastResource[*v1.Resource, *v1.Duck]{Reconciler: reconciler},
		&reconcilers.SyncReconciler[*v1.Resource]{
			Sync: func(_ context.Context, resource *v1.Resource) error {
				fmt.Println("seen:", resource.Status.Fields["seen"])
				return nil
			},
		},
	})
	// Output:
	// Resource blog says Hello
	// seen: true
}

func ExampleCastResource_anyObject() {
	// If the CastType is an interface, the resource itself is passed.
	label := &reconcilers.SyncReconciler[client.Object]{
		Sync: func(_ context.Context, obj client.Object) error {
			fmt.Printf("%T %s\n", obj, obj.GetName())
			return nil
		},
	}
	reconcile(clusterWith(site()), &reconcilers.CastResource[*v1.Resource, client.Object]{Reconciler: label})
	// Output:
	// *fixture.Resource blog
}

func ExampleWithConfig() {
	here, there := clusterWith(site()), clusterWith(
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "theme"}, Data: map[string]string{"color": "green"},
		},
	)
	reconcile(here, &reconcilers.WithConfig[*v1.Resource]{
		Config: func(_ context.Context, _ reconcilers.Config) (reconcilers.Config, error) {
			return there, nil
		},
		Reconciler: &reconcilers.SyncReconciler[*v1.Resource]{
			Sync: func(ctx context.Context, resource *v1.Resource) error {
				theme, key := &corev1.ConfigMap{}, types.NamespacedName{Namespace: resource.Namespace, Name: "theme"}
				if err := reconcilers.RetrieveConfigOrDie(ctx).Get(ctx, key, theme); err != nil {
					return err
				}
				fmt.Println("theme there:", theme.Data["color"])
				fmt.Println("resource from there:", reconcilers.RetrieveOriginalConfigOrDie(ctx) == there)
				return nil
			},
		},
	})
	// Output:
	// theme there: green
	// resource from there: false
}

// A program creates the other config once. It uses the cluster for reads and watches, and the tracker of the first
// config.
func ExampleWithConfig_cluster() {
	setup := func(ctx context.Context, mgr ctrl.Manager, config reconcilers.Config) error {
		other, err := cluster.New(ctrl.GetConfigOrDie(), func(o *cluster.Options) { o.Scheme = mgr.GetScheme() })
		if err != nil {
			return err
		}
		// The manager starts the caches of the other cluster.
		if err := mgr.Add(other); err != nil {
			return err
		}
		there := config.WithCluster(other)
		reconciler := &reconcilers.ResourceReconciler[*v1.Resource]{
			Reconciler: &reconcilers.WithConfig[*v1.Resource]{
				Config:     func(context.Context, reconcilers.Config) (reconcilers.Config, error) { return there, nil },
				Reconciler: reconcilers.Sequence[*v1.Resource]{},
			},
			Config: config,
		}
		return reconciler.SetupWithManager(ctx, mgr)
	}
	_ = setup
}

// Tests run a single reconciler with their own context.
func ExampleStashConfig() {
	ctx := reconcilers.StashConfig(context.Background(), clusterWith(site()))
	config, err := reconcilers.RetrieveConfig(ctx)
	fmt.Println("empty:", config.IsEmpty(), "error:", err)
	_, err = reconcilers.RetrieveConfig(context.Background())
	fmt.Println("without:", err)
	// Output:
	// empty: false error: <nil>
	// without: config must exist on the context. Check that the context is from a ResourceReconciler or WithConfig
}

func ExampleRetrieveRequest() {
	reconcile(clusterWith(site()), &reconcilers.SyncReconciler[*v1.Resource]{
		Sync: func(ctx context.Context, _ *v1.Resource) error {
			fmt.Println(reconcilers.RetrieveRequest(ctx))
			return nil
		},
	})
	// Output:
	// default/blog
}

func ExampleRetrieveAdditionalConfigs() {
	ctx := reconcilers.StashAdditionalConfigs(context.Background(), map[string]reconcilers.Config{"backup": clusterWith()})
	backup, ok := reconcilers.RetrieveAdditionalConfigs(ctx)["backup"]
	fmt.Println(ok, backup.IsEmpty())
	// Output:
	// true false
}

// admit sends a site to a webhook like the API server, and prints the response.
func admit(webhook admission.Handler, site string) {
	resp := webhook.Handle(context.Background(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(site)},
	}})
	fmt.Println("allowed:", resp.Allowed)
	for _, patch := range resp.Patches {
		fmt.Println("patch:", patch.Json())
	}
	if resp.Result != nil {
		fmt.Println("message:", resp.Result.Message)
	}
}

func ExampleAdmissionWebhookAdapter() {
	webhook := &reconcilers.AdmissionWebhookAdapter[*v1.ResourceNoStatus]{
		Reconciler: &reconcilers.SyncReconciler[*v1.ResourceNoStatus]{
			Sync: func(_ context.Context, resource *v1.ResourceNoStatus) error {
				if resource.Spec.Fields["index.html"] == "" {
					return errors.New("a site needs an index.html")
				}
				resource.Labels = map[string]string{"checked": "true"}
				return nil
			},
		},
	}
	admit(webhook, `{"metadata": {"name": "blog"}, "spec": {"fields": {"index.html": "Hello"}}, "fieldOfTheFuture": 1}`)
	admit(webhook, `{"metadata": {"name": "blog"}}`)
	// Output:
	// allowed: true
	// patch: {"op":"add","path":"/metadata/labels","value":{"checked":"true"}}
	// allowed: false
	// message: a site needs an index.html
}

func ExampleAdmissionWebhookAdapter_BuildWithContext() {
	setup := func(ctx context.Context, mgr ctrl.Manager, config reconcilers.Config) error {
		adapter := &reconcilers.AdmissionWebhookAdapter[*v1.Resource]{
			Reconciler: reconcilers.Sequence[*v1.Resource]{},
			Config:     config,
		}
		webhook, err := adapter.BuildWithContext(ctx)
		if err != nil {
			return err
		}
		mgr.GetWebhookServer().Register("/mutate-sites", webhook)
		return nil
	}
	_ = setup
}

func ExampleRetrieveAdmissionRequest() {
	webhook := &reconcilers.AdmissionWebhookAdapter[*v1.ResourceNoStatus]{
		Reconciler: &reconcilers.SyncReconciler[*v1.ResourceNoStatus]{
			Sync: func(ctx context.Context, resource *v1.ResourceNoStatus) error {
				fmt.Println(reconcilers.RetrieveAdmissionRequest(ctx).Operation, resource.Name)
				return nil
			},
		},
	}
	admit(webhook, `{"metadata": {"name": "blog"}}`)
	// Output:
	// CREATE blog
	// allowed: true
}

func ExampleRetrieveAdmissionResponse() {
	webhook := &reconcilers.AdmissionWebhookAdapter[*v1.ResourceNoStatus]{
		Reconciler: &reconcilers.SyncReconciler[*v1.ResourceNoStatus]{
			Sync: func(ctx context.Context, _ *v1.ResourceNoStatus) error {
				resp := reconcilers.RetrieveAdmissionResponse(ctx)
				resp.Allowed = false
				resp.Result = &metav1.Status{Code: http.StatusForbidden, Message: "not on a Friday"}
				return nil
			},
		},
	}
	admit(webhook, `{"metadata": {"name": "blog"}}`)
	// Output:
	// allowed: false
	// message: not on a Friday
}

func ExampleRetrieveHTTPRequest() {
	_ = &reconcilers.SyncReconciler[*v1.Resource]{
		Sync: func(ctx context.Context, _ *v1.Resource) error {
			if req := reconcilers.RetrieveHTTPRequest(ctx); req != nil {
				logr.FromContextOrDiscard(ctx).Info("called", "by", req.UserAgent())
			}
			return nil
		},
	}
}
