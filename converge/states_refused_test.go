// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// titler copies the title of a page to two ConfigMaps. Titles with capital letters are not accepted.
type titler struct {
	client.Client

	cloud Cloud
	// late checks the title only before the second ConfigMap is written. stale never changes a title.
	late, stale bool
	// fails returns an error for a title that is not accepted, instead of a condition with the reason Waiting.
	fails bool
	// noted has a condition with a word of refusals, whose status is always True.
	noted bool
	// archives writes to an external system when a page is deleted.
	archives bool
	// behind reports a condition of the first generation.
	behind bool
	// warns leaves the page as it is if a title is not accepted, and records a warning. always records one for each title.
	warns, always bool
	// bare reports no conditions.
	bare     bool
	recorder record.EventRecorder
}

func (r *titler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	page := &Page{}
	if err := r.Get(ctx, req.NamespacedName, page); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if page.DeletionTimestamp != nil || r.archives && controllerutil.AddFinalizer(page, "states.trueup.dev/archive") {
		return reconcile.Result{}, r.archive(ctx, page)
	}
	accepted := strings.ToLower(page.Spec.Title) == page.Spec.Title
	if r.always || r.warns && !accepted {
		r.recorder.Event(page, corev1.EventTypeWarning, "Noted", "the title has capital letters")
	}
	if r.warns && !accepted {
		return reconcile.Result{}, nil
	}
	var err error
	for i, name := range []string{"first", "second"} {
		if accepted || r.late && i == 0 {
			err = errors.Join(err, r.write(ctx, page, name))
		}
	}
	if r.bare {
		return reconcile.Result{}, err
	}
	before := slices.Clone(page.Status.Conditions)
	ready := metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Written", ObservedGeneration: page.Generation,
	}
	if !accepted {
		ready.Status, ready.Reason = metav1.ConditionFalse, "Waiting"
		if r.fails {
			err = errors.Join(err, errors.New("the title is not accepted"))
		}
	}
	apimeta.SetStatusCondition(&page.Status.Conditions, ready)
	if r.noted {
		apimeta.SetStatusCondition(&page.Status.Conditions, metav1.Condition{
			Type: "FailoverPossible", Status: metav1.ConditionTrue, Reason: "Always",
		})
	}
	if found := apimeta.FindStatusCondition(before, "Behind"); r.behind && (accepted || found == nil) {
		apimeta.SetStatusCondition(&page.Status.Conditions, metav1.Condition{
			Type: "Behind", Status: metav1.ConditionTrue, Reason: "Written", ObservedGeneration: page.Generation,
		})
	}
	if !slices.Equal(before, page.Status.Conditions) {
		err = errors.Join(err, r.Status().Update(ctx, page))
	}
	return reconcile.Result{}, err
}

func (r *titler) write(ctx context.Context, page *Page, name string) error {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: page.Namespace, Name: name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, config, func() error {
		if !r.stale || config.Data == nil {
			config.Data = map[string]string{"title": page.Spec.Title}
		}
		return controllerutil.SetControllerReference(page, config, r.Scheme())
	})
	return err
}

func (r *titler) archive(ctx context.Context, page *Page) error {
	if page.DeletionTimestamp != nil && controllerutil.RemoveFinalizer(page, "states.trueup.dev/archive") {
		if err := r.cloud.Put(ctx, string(page.UID), page.Spec.Title); err != nil {
			return err
		}
	}
	return client.IgnoreNotFound(r.Update(ctx, page))
}

func titleScenario(r titler) Scenario {
	s := pageScenario(nil)
	s.New = func(e Env) reconcile.Reconciler {
		r.Client, r.cloud, r.recorder = e.Client, e.Cloud, e.Recorder
		return &r
	}
	s.Steps = Lifecycle(&Page{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Spec: PageSpec{Title: "hello"},
	})
	const other = "only the title is used"
	s.Space.Values = map[string][]any{"spec.title": {"Capital"}}
	s.Space.Skip = map[string]string{
		"spec.color": other, "spec.size": other, "spec.tags": other, "spec.theme": other, "spec.vars": other,
	}
	return s
}

// A status refuses a spec if it differs from the status of an object that is Ready.
func TestStatesOfRefusedSpecs(t *testing.T) {
	for name, test := range map[string]struct {
		titler titler
		oracle Oracle
		advice string
	}{
		"not Ready":                           {titler: titler{}},
		"an error":                            {titler: titler{fails: true}},
		"an older condition while waiting":    {titler: titler{behind: true}},
		"a word that is always there":         {titler: titler{noted: true}},
		"a bug next to such a word":           {titler: titler{noted: true, stale: true}, oracle: OraclePath},
		"a warning, and no condition Ready":   {titler: titler{warns: true}},
		"a warning, and no conditions at all": {titler: titler{warns: true, bare: true}},
		"a bug next to a warning":             {titler: titler{warns: true, bare: true, stale: true}, oracle: OraclePath},
		"a warning that is always there":      {titler: titler{warns: true, bare: true, always: true}, oracle: OraclePath},
		"half a change": {
			titler: titler{late: true, fails: true},
			advice: "is refused, but has changed ConfigMap default/first, and not ConfigMap default/second",
		},
	} {
		t.Run(name, func(t *testing.T) {
			report := checkStates(t, titleScenario(test.titler))
			switch f := report.Failure; {
			case f != nil && f.Violation.Oracle != test.oracle:
				t.Errorf("want %q, got %s", test.oracle, f)
			case f == nil && test.oracle != "":
				t.Errorf("found nothing, want %s", test.oracle)
			}
			advice := strings.Join(report.Certificate.Advice, "\n")
			if !strings.Contains(advice, test.advice) || test.advice == "" && advice != "" {
				t.Errorf("got advice %q, want %q", advice, test.advice)
			}
		})
	}
}

// What is left behind on purpose may have the UID of the object in its name, also if another object has the same name.
func TestStatesOfObjectsThatLeaveSomething(t *testing.T) {
	s := titleScenario(titler{archives: true})
	s.Off = map[Oracle]string{OracleDeletion: "the archive outlives the page"}
	if report := checkStates(t, s); report.Failure != nil {
		t.Error(report.Failure)
	}
}
