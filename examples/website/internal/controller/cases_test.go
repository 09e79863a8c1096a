// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/examples/website"
	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/internal/controller"
	"trueup.dev/examples/website/internal/manifest"
	"trueup.dev/examples/website/internal/render"
	"trueup.dev/reconcilers"
	"trueup.dev/sandbox"
	rtesting "trueup.dev/testing"
)

// The objects of the cases. Cases derive variants with rtesting.With.
var (
	now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

	// shop has the defaults of its CustomResourceDefinition.
	shop = &websitev1.Website{
		ObjectMeta: metav1.ObjectMeta{Namespace: "cases", Name: "shop", UID: "uid-of-shop", Generation: 1},
		Spec: websitev1.WebsiteSpec{
			Domain: "shop.example.com", Image: "nginx:1.29", Replicas: new(int32(2)),
			Pages: []websitev1.Page{{Name: "index", Title: "Welcome"}},
		},
	}
	leavingShop = rtesting.With(shop, finalizer, func(site *websitev1.Website) {
		site.DeletionTimestamp = new(metav1.NewTime(now.Add(-time.Minute)))
	})

	shopFiles  = manifest.Files{"": must(plainTheme().Site(shop.Spec.Domain, "", controller.Pages(shop.Spec.Pages)))}
	content    = owned(manifest.Content(shop, "", shopFiles[""]))
	deployment = owned(manifest.Deployment(shop, shopFiles))
	service    = owned(manifest.Service(shop))
	// addressed is the Service after the cluster has assigned an address.
	addressed = rtesting.With(service, func(s *corev1.Service) { s.Spec.ClusterIP = "198.18.77.77" })
)

func finalizer(site *websitev1.Website) { site.Finalizers = []string{websitev1.Finalizer} }

// condition sets a condition as a reconciler does, at the time of the cases.
func condition(name string, status metav1.ConditionStatus, reason, message string) func(*websitev1.Website) {
	return func(site *websitev1.Website) {
		conditions := site.Status.ConditionManager(context.Background())
		switch status {
		case metav1.ConditionTrue:
			conditions.MarkTrue(name, reason, "%s", message)
		case metav1.ConditionFalse:
			conditions.MarkFalse(name, reason, "%s", message)
		default:
			conditions.MarkUnknown(name, reason, "%s", message)
		}
	}
}

// owned makes the shop the owner of a child.
func owned[T client.Object](child T) T {
	child.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: websitev1.GroupVersion.String(), Kind: "Website", Name: shop.Name, UID: shop.UID,
		Controller: new(true), BlockOwnerDeletion: new(true),
	}})
	return child
}

// foreign returns an object of another owner with the name of a child.
func foreign[T client.Object](child T) T {
	copied := child.DeepCopyObject().(T)
	copied.SetOwnerReferences(nil)
	return copied
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// scheme has the kinds of the cases.
var scheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, website.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
})

// assignAddress assigns an address to a new Service, as a cluster does.
func assignAddress(action rtesting.Action) (bool, runtime.Object, error) {
	create, ok := action.(rtesting.CreateAction)
	if !ok {
		return false, nil, nil
	}
	s, ok := create.GetObject().(*corev1.Service)
	if ok {
		s.Spec.ClusterIP = addressed.Spec.ClusterIP
	}
	return false, nil, nil
}

func plainTheme() *render.Theme { return must(render.ParseTheme(nil)) }

func created(child client.Object, kind string) rtesting.Event { return managed("Created", child, kind) }

func updated(child client.Object, kind string) rtesting.Event { return managed("Updated", child, kind) }

func deleted(child client.Object, kind string) rtesting.Event { return managed("Deleted", child, kind) }

func managed(verb string, child client.Object, kind string) rtesting.Event {
	return rtesting.NewEvent(shop, scheme(), corev1.EventTypeNormal, verb, "%s %s %q", verb, kind, child.GetName())
}

func notCreated(kind, name, why string) rtesting.Event {
	return rtesting.NewEvent(
		shop, scheme(), corev1.EventTypeWarning, "CreationFailed", "Failed to create %s %q: %s", kind, name, why,
	)
}

// halted asserts that a step has halted.
func halted(t *testing.T, _ reconcilers.Result, err error) {
	t.Helper()
	if !errors.Is(err, reconcilers.ErrHaltSubReconcilers) {
		t.Errorf("error = %v, want one that halts", err)
	}
}

type (
	subCases     = rtesting.SubReconcilerTests[*websitev1.Website]
	subCase      = rtesting.SubReconcilerTestCase[*websitev1.Website]
	subFactory   = rtesting.SubReconcilerFactory[*websitev1.Website]
	subReconcile = reconcilers.SubReconciler[*websitev1.Website]
)

// runSteps runs the cases of one step on both APIs, see [onBoth].
func runSteps(t *testing.T, cases subCases, step func(t *testing.T) subReconcile) {
	t.Helper()
	onBoth(t, func(t *testing.T, options ...rtesting.RunOption) {
		factory := subFactory(func(t *testing.T, _ *subCase, _ reconcilers.Config) subReconcile { return step(t) })
		cases.Run(t, scheme(), factory, options...)
	})
}

// onBoth runs cases in memory, and then the same cases on a real API.
func onBoth(t *testing.T, run func(t *testing.T, options ...rtesting.RunOption)) {
	t.Helper()
	t.Run("in memory", func(t *testing.T) { run(t) })
	t.Run("on a cluster", func(t *testing.T) {
		sb := sandbox.ForTest(t, sandbox.TestOptions{CRDs: []any{website.CRDs()}})
		run(t, rtesting.OnCluster(sb.RESTConfig()))
	})
}

var statusKinds = []client.Object{&websitev1.Website{}, &appsv1.Deployment{}}
