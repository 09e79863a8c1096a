// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	websitev1 "trueup.dev/examples/website/api/v1"
)

func TestDefaulting(t *testing.T) {
	e := newEnv(t)
	e.serve()
	site := newSite("shop")
	site.Spec.Domain = "Shop.Example.COM"
	site.Spec.Pages = []websitev1.Page{{Name: "index", Title: "Welcome"}, {Name: "opening-hours"}}
	site.Spec.Languages = []websitev1.Language{
		{Code: "de", Pages: []websitev1.Page{{Name: "index", Title: "Willkommen"}, {Name: "opening-hours"}}},
	}
	e.Add(site)
	e.Must(e.Read(site))
	want := websitev1.WebsiteSpec{
		Domain:   "shop.example.com",
		Image:    "nginx:1.29",
		Replicas: new(int32(1)),
		Pages:    []websitev1.Page{{Name: "index", Title: "Welcome"}, {Name: "opening-hours", Title: "Opening hours"}},
		Languages: []websitev1.Language{
			{
				Code:  "de",
				Pages: []websitev1.Page{{Name: "index", Title: "Willkommen"}, {Name: "opening-hours", Title: "Opening hours"}},
			},
		},
	}
	if diff := cmp.Diff(want, site.Spec); diff != "" {
		t.Errorf("created spec (-want +got):\n%s", diff)
	}

	change(e, site, func(site *websitev1.Website) {
		site.Spec.Pages = append(site.Spec.Pages, websitev1.Page{Name: "about-us"})
	})
	e.Must(e.Read(site))
	want.Pages = append(want.Pages, websitev1.Page{Name: "about-us", Title: "About us"})
	if diff := cmp.Diff(want, site.Spec); diff != "" {
		t.Errorf("updated spec (-want +got):\n%s", diff)
	}
}

// A client without the Go type, such as kubectl, omits fields that it does not set: here, the title.
func TestDefaulting_ofAnAppliedManifest(t *testing.T) {
	e := newEnv(t)
	e.serve()
	manifest := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": websitev1.GroupVersion.String(),
		"kind":       "Website",
		"metadata":   map[string]any{"name": "shop", "namespace": e.Namespace},
		"spec": map[string]any{
			"domain": "Shop.example.com",
			"pages":  []any{map[string]any{"name": "index"}},
		},
	}}
	for range 2 { // a user applies the same manifest again
		e.Must(
			e.Apply(
				t.Context(), client.ApplyConfigurationFromUnstructured(manifest.DeepCopy()), client.FieldOwner("kubectl"),
				client.ForceOwnership,
			),
		)
	}
	stored := newSite("shop")
	stored.Namespace = e.Namespace
	e.Must(e.Read(stored))
	if diff := cmp.Diff([]websitev1.Page{{Name: "index", Title: "Index"}}, stored.Spec.Pages); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	if stored.Spec.Domain != "shop.example.com" {
		t.Errorf("domain = %s", stored.Spec.Domain)
	}
	if stored.Generation != 1 {
		t.Errorf("generation = %d: applying the same manifest again changed the object", stored.Generation)
	}
}

func TestDomainIsFree(t *testing.T) {
	e := newEnv(t)
	e.serve()
	first := newSite("first")
	e.Add(first)

	second := newSite("second")
	second.Namespace, second.Spec.Domain = e.Namespace, "First.example.com" // the stored domain counts
	var err error
	e.Eventually(func() error { // the cache may be stale
		if err = e.Create(t.Context(), second.DeepCopy(), client.DryRunAll); err == nil {
			return errors.New("the domain of another site is accepted")
		}
		return nil
	})
	const complaint = `spec.domain: Invalid value: "first.example.com": the Website "first" in this namespace already has this domain`
	wantDenied(t, err, metav1.StatusReasonInvalid, complaint)
	var status apierrs.APIStatus
	if errors.As(err, &status) {
		causes := status.Status().Details.Causes
		if len(causes) != 1 || causes[0].Field != "spec.domain" {
			t.Errorf("causes = %+v", causes)
		}
	}

	second.Spec.Domain = "second.example.com"
	e.Add(second)
	second.Spec.Domain = "first.example.com"
	wantDenied(t, e.Update(t.Context(), second), metav1.StatusReasonInvalid, complaint)
	e.Must(e.Read(second))
	if second.Spec.Domain != "second.example.com" {
		t.Errorf("domain = %s, although the update was denied", second.Spec.Domain)
	}

	first.Spec.Domain = "elsewhere.example.com"
	e.Must(e.Update(t.Context(), first))
	second.Spec.Domain = "first.example.com"
	if err := e.Update(t.Context(), second); err != nil {
		t.Errorf("a domain that is free since a moment ago: %v", err)
	}
}

// A stale cache still contains a deleted site; its domain is free nevertheless.
func TestDomainIsFree_afterADeletion(t *testing.T) {
	e := newEnv(t)
	e.serve()
	for i := range 20 {
		site := newSite(fmt.Sprintf("site-%02d", i))
		site.Spec.Domain = "wandering.example.com"
		e.Add(site)
		e.Must(e.Delete(t.Context(), site))
	}
	leaving, next := newSite("leaving"), newSite("next")
	leaving.Finalizers = []string{"example.com/hold"}
	next.Spec.Domain = leaving.Spec.Domain
	e.Add(leaving)
	e.Must(e.Delete(t.Context(), leaving))
	e.Add(next)

	change(e, leaving, func(site *websitev1.Website) { site.Finalizers = nil })
	e.WaitForDeletion(leaving)
}

// Sites that were stored before the webhook existed stay writable.
func TestDomainIsFree_leavesOldSitesAlone(t *testing.T) {
	e := newEnv(t)
	first, second := newSite("first"), newSite("second")
	second.Spec.Domain = first.Spec.Domain
	e.Add(first)
	e.Add(second)
	e.serve()
	change(e, second, func(site *websitev1.Website) { site.Spec.Replicas = new(int32(3)) })
	change(e, second, func(site *websitev1.Website) { site.Finalizers = []string{"example.com/hold"} })
	e.Must(e.Delete(t.Context(), second))
	change(e, second, func(site *websitev1.Website) { site.Finalizers = nil })
	e.WaitForDeletion(second)
}

func TestProtection(t *testing.T) {
	e := newEnv(t)
	e.serve()
	site := newSite("shop")
	site.Annotations = map[string]string{websitev1.AnnotationProtected: "true"}
	e.Add(site)
	const complaint = `websites.demo.trueup.dev "shop" is forbidden: it is protected: remove the annotation demo.trueup.dev/protected first`
	wantDenied(t, e.Delete(t.Context(), site), metav1.StatusReasonForbidden, complaint)
	err := e.DeleteAllOf(t.Context(), &websitev1.Website{}, client.InNamespace(e.Namespace))
	wantDenied(t, err, metav1.StatusReasonForbidden, complaint)

	change(e, site, func(site *websitev1.Website) { site.Annotations[websitev1.AnnotationProtected] = "false" })
	e.Must(e.Delete(t.Context(), site))
	e.WaitForDeletion(site)
}

// The controller writes Websites too: it adds finalizers, and removes them from sites that are being deleted.
func TestWebhooksBesideTheController(t *testing.T) {
	e := newEnv(t)
	e.serve(e.withController)
	site := newSite("shop")
	site.Spec.Pages = []websitev1.Page{{Name: "index"}, {Name: "opening-hours"}}
	e.Add(site)
	e.Eventually(func() error {
		e.Must(e.Read(site))
		ready := site.Status.GetCondition(websitev1.ConditionReady)
		if ready == nil || ready.Status != metav1.ConditionTrue || site.Status.ObservedGeneration != site.Generation {
			return fmt.Errorf("not ready: %+v", site.Status)
		}
		return nil
	})
	var content corev1.ConfigMap
	e.Must(e.Get(t.Context(), client.ObjectKey{Namespace: e.Namespace, Name: "shop-content"}, &content))
	if page := content.Data["opening-hours.html"]; !strings.Contains(page, "Opening hours") {
		t.Errorf("the page does not have the default title:\n%s", page)
	}
	e.Must(e.Delete(t.Context(), site))
	e.WaitForDeletion(site)
}

func wantDenied(t *testing.T, err error, reason metav1.StatusReason, message string) {
	t.Helper()
	const denied = `admission webhook "vwebsite-v1.demo.trueup.dev" denied the request: `
	if apierrs.ReasonForError(err) != reason || !strings.HasPrefix(err.Error(), denied) ||
		!strings.HasSuffix(err.Error(), message) {
		t.Errorf("error = %v\nwant reason %s, text %s… %s", err, reason, denied, message)
	}
}
