// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// owning is a reconciler that keeps one ConfigMap with a generated name for a Secret.
type owning struct {
	client.Client

	// find returns the child, or nil.
	find func(r *owning, secret *corev1.Secret, all []corev1.ConfigMap) *corev1.ConfigMap
	// ours reports whether an object that is not the child is deleted.
	ours func(secret *corev1.Secret, cm *corev1.ConfigMap) bool
}

const (
	keptFor   = "kept-for"
	childName = "child"
)

// byLabel is wrong: users edit labels.
func byLabel(_ *owning, secret *corev1.Secret, all []corev1.ConfigMap) *corev1.ConfigMap {
	for i := range all {
		if all[i].Labels[keptFor] == secret.Name {
			return &all[i]
		}
	}
	return nil
}

// byMaker is right: the annotation names what made the object, and the owner reference for which object.
func byMaker(_ *owning, secret *corev1.Secret, all []corev1.ConfigMap) *corev1.ConfigMap {
	for i := range all {
		if made(secret, &all[i]) {
			return &all[i]
		}
	}
	return nil
}

// byLabelAtFirst is wrong until the name of the child is recorded.
func byLabelAtFirst(r *owning, secret *corev1.Secret, all []corev1.ConfigMap) *corev1.ConfigMap {
	for i := range all {
		if all[i].Name == secret.Annotations[childName] {
			return &all[i]
		}
	}
	return byLabel(r, secret, all)
}

func made(secret *corev1.Secret, cm *corev1.ConfigMap) bool {
	return metav1.IsControlledBy(cm, secret) && cm.Annotations[keptFor] == "owning"
}

func (r *owning) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	secret, list := &corev1.Secret{}, &corev1.ConfigMapList{}
	if err := r.Get(ctx, req.NamespacedName, secret); err != nil || secret.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.List(ctx, list, client.InNamespace(req.Namespace)); err != nil {
		return reconcile.Result{}, err
	}
	child := r.find(r, secret, list.Items)
	for i := range list.Items {
		if cm := &list.Items[i]; (child == nil || cm.Name != child.Name) && r.ours(secret, cm) {
			if err := r.Delete(ctx, cm, client.Preconditions{UID: &cm.UID}); client.IgnoreNotFound(err) != nil {
				return reconcile.Result{}, err
			}
		}
	}
	value, exists := string(secret.Data["value"]), child != nil
	if !exists {
		child = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: req.Namespace, GenerateName: req.Name + "-", Annotations: map[string]string{keptFor: "owning"},
		}}
		if err := controllerutil.SetControllerReference(secret, child, scheme.Scheme); err != nil {
			return reconcile.Result{}, err
		}
	}
	if !exists || child.Data["value"] != value || child.Labels[keptFor] != secret.Name {
		child.Data = map[string]string{"value": value}
		metav1.SetMetaDataLabel(&child.ObjectMeta, keptFor, secret.Name)
		write := func() error { return r.Update(ctx, child) }
		if !exists {
			write = func() error { return r.Create(ctx, child) }
		}
		return reconcile.Result{}, write()
	}
	if secret.Annotations[childName] == child.Name {
		return reconcile.Result{}, nil
	}
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, childName, child.Name)
	return reconcile.Result{}, r.Update(ctx, secret)
}

// owningScenario has users who edit the label of the child, and create objects of its kind.
func owningScenario(
	find func(*owning, *corev1.Secret, []corev1.ConfigMap) *corev1.ConfigMap,
	ours func(*corev1.Secret, *corev1.ConfigMap) bool,
) Scenario {
	s := copierScenario(false)
	s.New = func(e Env) reconcile.Reconciler { return &owning{e.Client, find, ours} }
	s.Consistency = Gate
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "foreign"}}
	s.Disturbances = Steps(
		ChangeOwned(newSecret("a"), &corev1.ConfigMap{}, "label "+keptFor+"=other", func(cm *corev1.ConfigMap) {
			if _, ok := cm.Labels[keptFor]; ok {
				cm.Labels[keptFor] = "other"
			}
		}),
		CreateOwned(newSecret("a"), foreign, "kubectl"),
	)
	const other = "only data.value is copied"
	s.Space.Ignored = map[string]string{"data.added": other, "immutable": other, "stringData": other, "type": other}
	return s
}

// TestDisturbances tests that Run and States find a reconciler which takes the wrong object for its child after users
// have edited a label or created a similar object, and no correct one.
func TestDisturbances(t *testing.T) {
	const missing = "O2 end state: ConfigMap default/foreign is missing"
	none := func(*corev1.Secret, *corev1.ConfigMap) bool { return false }
	controlled := func(secret *corev1.Secret, cm *corev1.ConfigMap) bool { return metav1.IsControlledBy(cm, secret) }
	const duplicate = "O4 duplicates: ConfigMap default/a-*"
	for name, test := range map[string]struct {
		find func(*owning, *corev1.Secret, []corev1.ConfigMap) *corev1.ConfigMap
		ours func(*corev1.Secret, *corev1.ConfigMap) bool
		// found is the beginning of what Run finds, and states that of States, or "".
		found, states string
	}{
		"correct":                  {find: byMaker, ours: made},
		"child by label":           {byLabel, none, duplicate, "S1 path independence: ConfigMap default/a-*"},
		"child by label at first":  {byLabelAtFirst, none, duplicate, duplicate},
		"deletes what it controls": {byMaker, controlled, missing, missing},
	} {
		t.Run(name, func(t *testing.T) {
			s := owningScenario(test.find, test.ours)
			report := mustCheck(t, s, Options{Seed: 1})
			check := func(what, want string, v Violation, failed bool, certificate fmt.Stringer) {
				switch {
				case want == "" && failed, want != "" && !strings.HasPrefix(v.String(), want):
					t.Errorf("%s: got %q, want %q", what, v, want)
				case strings.Contains(certificate.String(), "not possible"):
					t.Errorf("%s: %s", what, certificate)
				}
			}
			found, failed := Violation{}, report.Failure != nil
			if failed {
				found = report.Failure.Violation
				if !report.Failure.schedule.Has(FaultDisturbance) {
					t.Errorf("found without a disturbance: %s", report.Failure)
				}
			}
			check("Run", test.found, found, failed, report.Certificate)
			states := checkStates(t, s)
			found, failed = Violation{}, states.Failure != nil
			if failed {
				found = states.Failure.Violation
				replayed(t, s, states.Failure)
			}
			check("States", test.states, found, failed, states.Certificate)
		})
	}
}

// replayed checks that a walk with a disturbance fails again when it is replayed.
func replayed(t *testing.T, s Scenario, f *StatesFailure) {
	t.Helper()
	again, err := mustStates(t, s).rerun(f.Replay)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{again.Replay, again.Violation.String()}
	if diff := cmp.Diff([]string{f.Replay, f.Violation.String()}, got); diff != "" {
		t.Errorf("replay (-want +got):\n%s", diff)
	}
	if len(f.Faults) > 0 {
		return
	}
	s.Disturbances = nil
	if _, err = mustStates(t, s).rerun(f.Replay); err == nil {
		t.Error("want an error: the scenario does not have the disturbance")
	}
}

// TestDisturbancesThatCannotHappen tests that a disturbance which is never possible is named, and that a scenario with
// an invalid one is rejected.
func TestDisturbancesThatCannotHappen(t *testing.T) {
	s := copierScenario(false)
	s.Disturbances = Steps(Update(newSecret("none")))
	report := converges(t, s, Options{Seed: 1})
	const want = `disturbance "update Secret default/none" was not possible at any moment that was tried`
	if got := report.Certificate.LeftOut; len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
	once := Delete(newSecret("a"))
	for want, steps := range map[string][]Step{
		"Disturbances[0] must be one action of users":                           {Settle()},
		`Disturbances[1]: another one is also called "delete Secret default/a"`: {once, once},
	} {
		s.Disturbances = steps
		if _, err := Check(t, s, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
}
