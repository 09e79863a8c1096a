// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// renamer keeps a ConfigMap with a suffix, and deletes those with other ones.
type renamer struct {
	client.Client

	suffix string
	others []string
}

func (c *renamer) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	secret := &corev1.Secret{}
	if err := c.Get(ctx, req.NamespacedName, secret); err != nil || secret.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name + c.suffix},
	}
	if _, err := controllerutil.CreateOrUpdate(ctx, c, configMap, func() error {
		configMap.Data = map[string]string{"value": string(secret.Data["value"])}
		return controllerutil.SetControllerReference(secret, configMap, scheme.Scheme)
	}); err != nil {
		return reconcile.Result{}, err
	}
	for _, suffix := range c.others {
		old := &corev1.ConfigMap{}
		err := c.Get(ctx, client.ObjectKey{Namespace: req.Namespace, Name: req.Name + suffix}, old)
		if err == nil && old.DeletionTimestamp == nil {
			err = c.Delete(ctx, old)
		}
		if client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{}, nil
}

func renamerScenario(suffix string, others ...string) Scenario {
	s := copierScenario(false)
	s.New = func(e Env) reconcile.Reconciler { return &renamer{e.Client, suffix, others} }
	return s
}

func mustCheckUpgrade(t *testing.T, old, current Scenario) *UpgradeReport {
	t.Helper()
	report, err := CheckUpgrade(t, old, current, DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestUpgrade_correct finds nothing if each version deletes the object of the other one.
func TestUpgrade_correct(t *testing.T) {
	report := mustCheckUpgrade(t, renamerScenario("-a", "-b"), renamerScenario("-b", "-a"))
	if report.Failure != nil {
		t.Fatal(report.Failure)
	}
	t.Log(report.Certificate, report.Certificate.Elapsed)
}

// TestUpgrade_leftOver finds the object of the old version that the new one does not know.
func TestUpgrade_leftOver(t *testing.T) {
	f := mustCheckUpgrade(t, renamerScenario("-a"), renamerScenario("-b")).Failure
	if f == nil {
		t.Fatal("not found")
	}
	t.Log(f, f.Replay)
	if f.Violation.Oracle != OracleEndState || f.Violation.Cause != CauseUnexpected {
		t.Errorf("found by %s", f.Violation)
	}
	want := "ConfigMap default/a-a should not exist: the old version has created it, " +
		"and the new version does not delete it"
	if f.Violation.Message != want {
		t.Errorf("message %q", f.Violation.Message)
	}
	if !strings.Contains(f.Timeline(), "process 2 starts: new version") {
		t.Error("the timeline does not have the start of the new version")
	}
}

// TestUpgrade_rollback finds that the old version does not delete the object of the new one.
func TestUpgrade_rollback(t *testing.T) {
	old, current := renamerScenario("-a"), renamerScenario("-b", "-a")
	f := mustCheckUpgrade(t, old, current).Failure
	if f == nil {
		t.Fatal("not found")
	}
	t.Log(f, f.Replay)
	if !strings.HasPrefix(f.Replay, "rollback:v1:") || !strings.Contains(f.Timeline(), "process 3 starts: old version") {
		t.Errorf("%s\n%s", f.Replay, f)
	}
	current.NoRollback = "the old version does not know the new name"
	report := mustCheckUpgrade(t, old, current)
	if report.Failure != nil {
		t.Fatal(report.Failure)
	}
	t.Log(report.Certificate)
}

// TestUpgrade_programs upgrades several programs at once.
func TestUpgrade_programs(t *testing.T) {
	versions := func(oldSuffix, newSuffix string, cleans bool) (old, current Scenario) {
		setup := func(suffix string, others ...string) func(ctrl.Manager) error {
			return func(mgr ctrl.Manager) error {
				return ctrl.NewControllerManagedBy(mgr).For(&corev1.Secret{}).Owns(&corev1.ConfigMap{}).Named("renamer").
					WithOptions(controller.Options{SkipNameValidation: new(true)}).
					Complete(&renamer{mgr.GetClient(), suffix, others})
			}
		}
		old, current = controllerScenario(false), controllerScenario(false)
		old.Setup, current.Setup = setup("-first"), setup("-first")
		old.Programs = []Program{{Name: "second", Setup: setup(oldSuffix)}}
		current.Programs = []Program{{Name: "second", Setup: setup(newSuffix)}}
		if cleans {
			current.Programs[0].Setup = setup(newSuffix, oldSuffix)
		}
		current.NoRollback = "the old version does not know the new name"
		return old, current
	}
	old, current := versions("-a", "-b", true)
	report := mustCheckUpgrade(t, old, current)
	if report.Failure != nil {
		t.Error(report.Failure)
	}
	old, current = versions("-a", "-b", false)
	f := mustCheckUpgrade(t, old, current).Failure
	if f == nil || f.Violation.About != "ConfigMap default/a-a" {
		t.Errorf("got %v, want the ConfigMap of the old version", f)
	}
	current.Programs = nil
	_, err := CheckUpgrade(t, old, current, DefaultOptions())
	if err == nil || !strings.Contains(err.Error(), "field Programs: ") {
		t.Errorf("error %v", err)
	}
}

// TestUpgrade_isReplayed replays failures in their direction, and tries them first when they are saved.
func TestUpgrade_isReplayed(t *testing.T) {
	for name, versions := range map[string][2]Scenario{
		upgradeName:  {renamerScenario("-a", "-b"), renamerScenario("-b")},
		rollbackName: {renamerScenario("-a"), renamerScenario("-b", "-a")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			found := mustCheckUpgrade(t, versions[0], versions[1]).Failure
			if found == nil || directionOf(found.Replay) != name {
				t.Fatalf("found %v", found)
			}
			if _, err := save(t, found); err != nil {
				t.Fatal(err)
			}
			u, err := newUpgrade(versions[0], versions[1], 1)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range u.directions {
				again := p.replaySaved(t)
				if p.direction() != name {
					if again != nil {
						t.Errorf("%s: %v", p.direction(), again)
					}
					continue
				}
				if again == nil || again.Replay != found.Replay || again.FullTimeline() != found.FullTimeline() {
					t.Errorf("got %v, want %v", again, found)
				}
			}
			if other := mustPlan(t, versions[0]).replaySaved(t); other != nil {
				t.Errorf("Run replays an upgrade: %v", other)
			}
		})
	}
}

// TestUpgrade_oneVersionFails reports which version fails alone.
func TestUpgrade_oneVersionFails(t *testing.T) {
	broken := renamerScenario("-b")
	broken.New = func(Env) reconcile.Reconciler {
		return reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { panic("broken") })
	}
	f := mustCheckUpgrade(t, renamerScenario("-a"), broken).Failure
	const want = "broken (the new version alone)"
	if f == nil || !strings.Contains(f.Violation.Message, want) || f.Replay != "upgrade:v1:1:" {
		t.Errorf("found %v", f)
	}
}

// TestUpgrade_rejectsOtherScenarios reports what differs although it comes from the current scenario.
func TestUpgrade_rejectsOtherScenarios(t *testing.T) {
	for want, change := range map[string]func(*Scenario){
		"field For: the old version reconciles ConfigMap, and the new one Secret": func(s *Scenario) {
			s.For = &corev1.ConfigMap{}
		},
		"field Steps: the old version has 1, and the new one 6": func(s *Scenario) { s.Steps = s.Steps[:1] },
		"field Masks: the old version has 1, and the new one 0": func(s *Scenario) { s.Masks = []Mask{{Field: "data"}} },
		"old version: scenario: New or Setup is required":       func(s *Scenario) { s.New = nil },
	} {
		old := renamerScenario("-a")
		change(&old)
		_, err := CheckUpgrade(t, old, renamerScenario("-b"), DefaultOptions())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// roller keeps a Deployment with an image.
type roller struct {
	client.Client

	image string
}

func (r *roller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	secret := &corev1.Secret{}
	if err := r.Get(ctx, req.NamespacedName, secret); err != nil || secret.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name}}
	labels := map[string]string{"app": req.Name}
	_, err := controllerutil.CreateOrUpdate(ctx, r, d, func() error {
		if d.CreationTimestamp.IsZero() {
			d.Spec.Selector, d.Spec.Template.Labels = &metav1.LabelSelector{MatchLabels: labels}, labels
			d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main"}}
		}
		d.Spec.Template.Spec.Containers[0].Image = r.image
		return controllerutil.SetControllerReference(secret, d, scheme.Scheme)
	})
	return reconcile.Result{}, err
}

// TestUpgrade_changes lists what an upgrade changes although users change nothing.
func TestUpgrade_changes(t *testing.T) {
	version := func(image string) Scenario {
		s := copierScenario(false)
		s.New = func(e Env) reconcile.Reconciler { return &roller{e.Client, image} }
		s.Owns = []client.Object{&appsv1.Deployment{}}
		return s
	}
	report := mustCheckUpgrade(t, version("sidecar:v1"), version("sidecar:v2"))
	if report.Failure != nil {
		t.Fatal(report.Failure)
	}
	want := `Deployment default/a: spec.template.spec.containers[name=main].image from "sidecar:v1" to "sidecar:v2": ` +
		"it restarts the pods"
	if got := report.Certificate.Changes; len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if text := report.Certificate.String(); !strings.Contains(text, "\nan upgrade changes "+want) {
		t.Error(text)
	}
}

// recreater keeps a ConfigMap with a label, and recreates it if the label is another one.
type recreater struct {
	client.Client

	label string
}

func (r *recreater) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	secret, configMap := &corev1.Secret{}, &corev1.ConfigMap{}
	if err := r.Get(ctx, req.NamespacedName, secret); err != nil || secret.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	err := r.Get(ctx, req.NamespacedName, configMap)
	switch {
	case client.IgnoreNotFound(err) != nil || configMap.DeletionTimestamp != nil || configMap.Labels[r.label] != "":
		return reconcile.Result{}, err
	case err == nil:
		uid := client.Preconditions{UID: new(configMap.UID)}
		return reconcile.Result{}, client.IgnoreNotFound(r.Delete(ctx, configMap, uid))
	}
	configMap = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: req.Namespace, Name: req.Name, Labels: map[string]string{r.label: "set"},
	}}
	if err := controllerutil.SetControllerReference(secret, configMap, scheme.Scheme); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.Create(ctx, configMap)
}

// TestUpgrade_recreates finds an object that an upgrade recreates, unless an exception declares it.
func TestUpgrade_recreates(t *testing.T) {
	version := func(label string) Scenario {
		s := copierScenario(false)
		s.New = func(e Env) reconcile.Reconciler { return &recreater{e.Client, label} }
		return s
	}
	old, current := version("one"), version("two")
	f := mustCheckUpgrade(t, old, current).Failure
	if f == nil || f.Violation.Oracle != OracleDuplicates || f.Violation.About != "ConfigMap default/a" {
		t.Errorf("found %v", f)
	}
	current.Except = []Exception{{
		Oracle: OracleDuplicates, Object: &corev1.ConfigMap{}, Reason: "labels identify the version",
	}}
	if report := mustCheckUpgrade(t, old, current); report.Failure != nil {
		t.Error(report.Failure)
	}
}

// keyed keeps a ConfigMap that has a value under some keys. It leaves other keys as they are.
type keyed struct {
	client.Client

	keys []string
	// changed is added to the value of the last key.
	changed string
}

func (r *keyed) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	secret := &corev1.Secret{}
	if err := r.Get(ctx, req.NamespacedName, secret); err != nil || secret.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r, configMap, func() error {
		if configMap.Data == nil {
			configMap.Data = map[string]string{}
		}
		for _, key := range r.keys {
			configMap.Data[key] = string(secret.Data["value"])
		}
		configMap.Data[r.keys[len(r.keys)-1]] += r.changed
		return controllerutil.SetControllerReference(secret, configMap, scheme.Scheme)
	})
	return reconcile.Result{}, err
}

// TestUpgrade_bothKeys writes a value under the old and the new key, so that the old version can take over again. It
// leaves the new key, which is correct. A new key with another value is a failure.
func TestUpgrade_bothKeys(t *testing.T) {
	version := func(changed string, keys ...string) Scenario {
		s := copierScenario(false)
		s.New = func(e Env) reconcile.Reconciler { return &keyed{e.Client, keys, changed} }
		return s
	}
	old := version("", "size")
	report := mustCheckUpgrade(t, old, version("", "size", "replicas"))
	if report.Failure != nil {
		t.Errorf("a false alarm:\n%s", report.Failure)
	}
	f := mustCheckUpgrade(t, old, version(" Mi", "size", "memory")).Failure
	const want = "ConfigMap default/a: data.memory should not be set"
	if f == nil || !strings.HasPrefix(f.Violation.Message, want) || !strings.HasPrefix(f.Replay, rollbackName) {
		t.Errorf("got %v, want %s after a rollback", f, want)
	}
	if f = mustCheckUpgrade(t, version("", "size", "replicas"), old).Failure; f == nil {
		t.Error("an upgrade that leaves a key is not found")
	}
}
