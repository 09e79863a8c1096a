// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/dns"
)

func TestWebsite_becomesReady(t *testing.T) {
	e := newEnv(t)
	e.startController()
	site := newSite("shop")
	site.Spec.Replicas = new(int32(2))
	site.Spec.ThemeRef = &websitev1.ThemeReference{Name: "paper"}
	site.Spec.Languages = []websitev1.Language{
		{Code: "pt-br"},
		{Code: "de", Pages: []websitev1.Page{{Name: "index", Title: "Willkommen"}}},
	}
	e.Add(newTheme("paper", "h1 {}"), site)
	site = e.ready("shop")

	conditions := map[string]string{}
	for _, c := range site.Status.Conditions {
		conditions[c.Type] = string(c.Status) + " " + c.Reason
	}
	if diff := cmp.Diff(map[string]string{
		"Ready":           "True Ready",
		"ContentReady":    "True Rendered",
		"DeploymentReady": "True RolledOut",
		"ServiceReady":    "True AddressAssigned",
		"RecordReady":     "True Published",
	}, conditions); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	got := websitev1.WebsiteStatus{
		URL: site.Status.URL, ReadyReplicas: site.Status.ReadyReplicas, Languages: site.Status.Languages,
	}
	want := websitev1.WebsiteStatus{URL: "http://shop.example.com", ReadyReplicas: 2, Languages: []string{"de", "pt-br"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}

	for name, want := range map[string]map[string]string{
		"shop-content":    {"style.css": "h1 {}", "index.html": "<h1>Welcome</h1>"},
		"shop-lang-de":    {"style.css": "h1 {}", "index.html": "<h1>Willkommen</h1>"},
		"shop-lang-pt-br": {"style.css": "h1 {}", "index.html": "<h1>Welcome</h1>"},
	} {
		if diff := cmp.Diff(want, e.configMap(name).Data); diff != "" {
			t.Errorf("data of %s (-want +got):\n%s", name, diff)
		}
		if !metav1.IsControlledBy(e.configMap(name), site) {
			t.Errorf("%s is not controlled by the site", name)
		}
	}
	var service corev1.Service
	e.Must(e.get(&service, "shop"))
	record, err := e.records.Lookup(t.Context(), "shop.example.com")
	if diff := cmp.Diff(
		dns.Record{Name: "shop.example.com", Target: service.Spec.ClusterIP, Owner: e.Namespace + "/shop"}, record,
	); diff != "" || err != nil {
		t.Errorf("record (-want +got), error %v:\n%s", err, diff)
	}
	deployment := e.deployment("shop")
	if deployment.Status.AvailableReplicas != 2 || deployment.Status.ObservedGeneration != deployment.Generation {
		t.Errorf("the site is ready, but its Deployment is not: %+v", deployment.Status)
	}
	if theme := e.configMap("paper"); len(theme.OwnerReferences) != 0 {
		t.Errorf("the theme has owners and would be deleted with the site: %v", theme.OwnerReferences)
	}
}

func TestWebsite_growsAndShrinksItsLanguages(t *testing.T) {
	e := newEnv(t)
	e.startController()
	e.Add(newSite("shop"))
	e.ready("shop")

	for _, codes := range [][]string{{"de", "fr"}, {"de", "es", "it"}, {"it"}, nil} {
		site := &websitev1.Website{}
		site.Namespace, site.Name = e.Namespace, "shop"
		change(e, site, func(site *websitev1.Website) {
			site.Spec.Languages = nil
			for _, code := range codes {
				site.Spec.Languages = append(site.Spec.Languages, websitev1.Language{Code: code})
			}
		})
		site = e.ready("shop")
		if diff := cmp.Diff(codes, site.Status.Languages); diff != "" {
			t.Errorf("status.languages (-want +got):\n%s", diff)
		}
		got := map[string]bool{}
		var configMaps corev1.ConfigMapList
		e.Must(
			e.List(t.Context(), &configMaps, client.InNamespace(e.Namespace), client.MatchingLabels{
				websitev1.LabelWebsite: "shop",
			}),
		)
		for _, item := range configMaps.Items {
			got[item.Name] = true
		}
		want := map[string]bool{"shop-content": true}
		for _, code := range codes {
			want["shop-lang-"+code] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ConfigMaps with the languages %v (-want +got):\n%s", codes, diff)
		}
		sources := e.deployment("shop").Spec.Template.Spec.Volumes[0].Projected.Sources
		if len(sources) != 1+len(codes) {
			t.Errorf("with the languages %v, %d ConfigMaps are mounted", codes, len(sources))
		}
	}
}

func TestWebsite_movesItsDomain(t *testing.T) {
	e := newEnv(t)
	e.startController()
	site := newSite("shop")
	e.Add(site)
	e.ready("shop")
	change(e, site, func(site *websitev1.Website) { site.Spec.Domain = "store.example.com" })
	if site = e.ready("shop"); site.Status.URL != "http://store.example.com" {
		t.Errorf("URL = %s", site.Status.URL)
	}
	if _, err := e.records.Lookup(t.Context(), "store.example.com"); err != nil {
		t.Error(err)
	}
	if _, err := e.records.Lookup(t.Context(), "shop.example.com"); !errors.Is(err, dns.ErrNotFound) {
		t.Errorf("the old record: error = %v, want %v", err, dns.ErrNotFound)
	}
}

func TestWebsite_waitsForATakenDomain(t *testing.T) {
	e := newEnv(t)
	e.recheck = 100 * time.Millisecond
	e.startController()
	first, second := newSite("first"), newSite("second")
	second.Spec.Domain = first.Spec.Domain
	e.Add(first)
	e.ready("first")
	e.Add(second)
	got := e.condition("second", websitev1.ConditionRecordReady, metav1.ConditionFalse, "DomainTaken")
	if got.Status.URL != "" {
		t.Errorf("a site without a record has the URL %s", got.Status.URL)
	}
	e.Must(e.Delete(t.Context(), first))
	e.ready("second") // no event has triggered this: the controller polls
}

// A failed call of an external system is retried, although the status with the failure has been written.
func TestWebsite_retriesAfterAFailure(t *testing.T) {
	e := newEnv(t)
	e.records.broken.Store(true)
	e.startController()
	e.Add(newSite("shop"))
	var site websitev1.Website
	e.Eventually(func() error {
		if err := e.get(&site, "shop"); err != nil {
			return err
		}
		c := site.Status.GetCondition(websitev1.ConditionRecordReady)
		if c == nil || c.Reason != "PublishFailed" || c.Message != errBroken.Error() {
			return fmt.Errorf("the status does not contain the failure: %+v", site.Status)
		}
		return nil
	})
	if site.Status.ObservedGeneration != 0 {
		t.Errorf("observedGeneration = %d after a failed reconcile", site.Status.ObservedGeneration)
	}
	e.records.broken.Store(false)
	e.ready("shop")
}

func TestWebsite_fiftyAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("rolls out fifty sites: with -short, the other tests roll out one or two")
	}
	const sites = 50
	e := newEnv(t)
	e.startController()
	e.Add(newTheme("paper", "h1 {}"))
	for i := range sites {
		site := newSite(fmt.Sprintf("site-%02d", i))
		site.Spec.ThemeRef = &websitev1.ThemeReference{Name: "paper"}
		site.Spec.Languages = []websitev1.Language{{Code: "de"}}
		e.Add(site)
	}
	for i := range sites {
		name := fmt.Sprintf("site-%02d", i)
		site := e.ready(name)
		if record, err := e.records.Lookup(t.Context(), site.Spec.Domain); err != nil ||
			record.Owner != e.Namespace+"/"+name {
			t.Errorf("%s: record = %v, %v", name, record, err)
		}
	}
	for kind, list := range map[string]client.ObjectList{
		"ConfigMaps":  &corev1.ConfigMapList{},
		"Deployments": &appsv1.DeploymentList{},
		"Services":    &corev1.ServiceList{},
	} {
		e.Must(e.List(t.Context(), list, client.InNamespace(e.Namespace), client.HasLabels{websitev1.LabelWebsite}))
		want := sites
		if kind == "ConfigMaps" {
			want = 2 * sites
		}
		items, err := apimeta.ExtractList(list)
		if err != nil || len(items) != want {
			t.Errorf("%d %s for %d sites, want %d (error %v)", len(items), kind, sites, want, err)
		}
	}
}
