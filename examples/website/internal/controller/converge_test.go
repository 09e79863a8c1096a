// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"trueup.dev/converge"
	"trueup.dev/examples/website"
	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/dns"
)

// cloudRecords is an external system of a scenario, in which each call can fail.
type cloudRecords struct{ cloud converge.Cloud }

func (r cloudRecords) Publish(ctx context.Context, record dns.Record) error {
	value, err := r.cloud.Get(ctx, record.Name)
	if err == nil && ownerOf(value) != record.Owner {
		return fmt.Errorf("publish %s: %w", record.Name, dns.ErrTaken)
	}
	if errors.Is(err, converge.ErrAbsent) || err == nil && value != valueOf(record) {
		err = r.cloud.Put(ctx, record.Name, valueOf(record))
	}
	if err != nil {
		return err
	}
	return r.withdraw(ctx, record.Owner, record.Name)
}

func (r cloudRecords) Withdraw(ctx context.Context, owner string) error {
	return r.withdraw(ctx, owner, "")
}

func (r cloudRecords) withdraw(ctx context.Context, owner, keep string) error {
	names, err := r.cloud.List(ctx, "")
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == keep {
			continue
		}
		value, err := r.cloud.Get(ctx, name)
		if err == nil && ownerOf(value) == owner {
			err = r.cloud.Delete(ctx, name)
		}
		if err != nil && !errors.Is(err, converge.ErrAbsent) {
			return err
		}
	}
	return nil
}

func (r cloudRecords) Lookup(context.Context, string) (dns.Record, error) {
	return dns.Record{}, errors.New("not used by the controller")
}

func valueOf(record dns.Record) string { return record.Owner + " " + record.Target }

func ownerOf(value string) string {
	owner, _, _ := strings.Cut(value, " ")
	return owner
}

// siteScenario sets up the controller as a program does, in a cluster that rolls out Deployments.
func siteScenario(t *testing.T) converge.Scenario {
	t.Helper()
	return converge.Scenario{
		Scheme: newScheme(t),
		For:    &websitev1.Website{},
		CRDs:   []client.Object{siteCRD(t)},
		Roles:  converge.RolesOrDie("../../config/rbac/role.yaml"),
		World:  []converge.Actor{converge.Deployments(converge.BecomeReady)},
		Setup: func(mgr ctrl.Manager) error {
			env := converge.EnvOf(mgr)
			return website.SetupWithManager(t.Context(), mgr, website.Options{
				Records: cloudRecords{env.Cloud}, Recheck: time.Minute,
			})
		},
	}
}

func siteCRD(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	manifest, err := fs.ReadFile(website.CRDs(), "demo.trueup.dev_websites.yaml")
	if err == nil {
		err = yaml.UnmarshalStrict(manifest, crd)
	}
	if err != nil {
		t.Fatal(err)
	}
	return crd
}

// prove is converge.Run for parallel tests. With -short, it tries single faults only: each fault at the first request
// or event of each kind, and as many more as make 65,000 requests.
func prove(t *testing.T, s converge.Scenario) {
	t.Helper()
	if raceDetector {
		t.Skip("runs only without the race detector, which makes schedules ten times slower")
	}
	t.Parallel()
	if !testing.Short() {
		converge.Run(t, s)
		return
	}
	o := converge.DefaultOptions()
	o.SingleRequests, o.Recoveries, o.Pairs = 65_000, 0, 0
	report, err := converge.Check(t, s, o)
	switch {
	case err != nil:
		t.Fatal(err)
	case report.Failure != nil:
		t.Fatal(report.Failure)
	}
	t.Log(report.Certificate)
}

// inDefault sets the namespace of the scenarios.
func inDefault[T client.Object](obj T) T {
	obj.SetNamespace(metav1.NamespaceDefault)
	return obj
}

func TestConverge_lifecycle(t *testing.T) {
	site := inDefault(newSite("shop"))
	site.Spec.Languages = []websitev1.Language{{Code: "de"}}
	s := siteScenario(t)
	s.Steps = converge.Lifecycle(site,
		func(site *websitev1.Website) {
			site.Spec.Domain, site.Spec.Replicas = "store.example.com", new(int32(2))
			site.Spec.Languages = []websitev1.Language{{Code: "fr"}}
		},
	)
	prove(t, s)
}

func TestConverge_themeComesAndChanges(t *testing.T) {
	site, theme := inDefault(themed("shop", "paper")), inDefault(newTheme("paper", "h1 {}"))
	s := siteScenario(t)
	s.Steps = converge.Steps(
		converge.Apply(site), converge.Settle(), // the theme does not exist yet
		converge.Apply(theme), converge.Settle(),
		converge.Change(theme, func(theme *corev1.ConfigMap) { theme.Data["style.css"] = "h2 {}" }), converge.Settle(),
		converge.Delete(site), converge.Settle(),
	)
	prove(t, s)
}

func TestConverge_themeGoes(t *testing.T) {
	if testing.Short() {
		t.Skip("tries a thousand schedules: with -short, TestConverge_themeComesAndChanges remains")
	}
	site, theme := inDefault(themed("shop", "paper")), inDefault(newTheme("paper", "h1 {}"))
	s := siteScenario(t)
	s.Given = []client.Object{theme}
	s.Steps = converge.Steps(
		converge.Apply(site), converge.Settle(), converge.Delete(theme), converge.Settle(),
		converge.Delete(site), converge.Settle(),
	)
	s.Without = map[converge.Fault]string{
		converge.FaultChildDeleted: "without its theme, a site keeps its content and cannot render it again",
		converge.FaultMeanwhile:    "without its theme, a site stays in the state that it has reached",
	}
	prove(t, s)
}

func TestConverge_sameNameAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("tries a thousand schedules: with -short, TestConverge_lifecycle remains")
	}
	site := inDefault(newSite("shop"))
	again := site.DeepCopy()
	again.Spec.Pages[0].Body = "Come in again."
	s := siteScenario(t)
	s.Steps = converge.Steps(
		converge.Apply(site), converge.Settle(), converge.Delete(site), converge.Settle(),
		converge.Apply(again), converge.Settle(), converge.Delete(again), converge.Settle(),
	)
	prove(t, s)
}

// Whatever users have wanted before, a site looks like a new one.
func TestConverge_states(t *testing.T) {
	if raceDetector || testing.Short() {
		t.Skip("tries many states, without the race detector: with -short, TestConverge_lifecycle changes specs")
	}
	t.Parallel()
	site := inDefault(newSite("shop"))
	site.Spec.Languages = []websitev1.Language{{Code: "de"}}
	s := siteScenario(t)
	s.Steps = converge.Steps(converge.Apply(inDefault(newTheme("paper", "h1 {}"))), converge.Apply(site))
	s.Space.Values = map[string][]any{"spec.themeRef": {websitev1.ThemeReference{Name: "paper"}}}
	converge.States(t, s)
}

// meshInjector is a program of another team, which annotates the pods of all Deployments.
type meshInjector struct{ client.Client }

func (r *meshInjector) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	const annotation = "mesh.example.com/inject"
	deployment := &appsv1.Deployment{}
	if err := r.Get(ctx, req.NamespacedName, deployment); err != nil || deployment.DeletionTimestamp != nil ||
		deployment.Spec.Template.Annotations[annotation] == "true" {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := deployment.DeepCopy()
	metav1.SetMetaDataAnnotation(&deployment.Spec.Template.ObjectMeta, annotation, "true")
	return ctrl.Result{}, client.IgnoreNotFound(r.Patch(ctx, deployment, client.MergeFrom(before)))
}

// TestConverge_injector runs another program that changes the Deployments. Both must leave the fields of the other one.
func TestConverge_injector(t *testing.T) {
	if testing.Short() {
		t.Skip("tries a thousand schedules: with -short, TestConverge_lifecycle remains")
	}
	s := siteScenario(t)
	s.Programs = []converge.Program{{Name: "injector", Setup: func(mgr ctrl.Manager) error {
		return ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).Complete(&meshInjector{mgr.GetClient()})
	}}}
	s.Steps = converge.Lifecycle(inDefault(newSite("shop")), func(site *websitev1.Website) {
		site.Spec.Replicas = new(int32(2))
	})
	prove(t, s)
}
