// SPDX-License-Identifier: Apache-2.0

package converge_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
	"trueup.dev/observe/recording"
)

// sync is a reconciler of Services, as a function of its client.
type sync func(ctx context.Context, c client.Client, service *corev1.Service) error

// setup registers the reconciler, observed, with watches of the kinds that it owns.
func (s sync) setup(owns ...client.Object) func(manager.Manager) error {
	return func(mgr manager.Manager) error {
		c := observe.Client(mgr)
		b := builder.ControllerManagedBy(mgr).For(&corev1.Service{})
		for _, owned := range owns {
			b.Owns(owned)
		}
		return observe.Controller(b).Complete(reconcile.Func(
			func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				service := &corev1.Service{}
				if err := c.Get(ctx, req.NamespacedName, service); err != nil {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				if service.DeletionTimestamp != nil {
					return reconcile.Result{}, nil
				}
				return reconcile.Result{}, s(ctx, c, service)
			},
		))
	}
}

// copySelector copies the selector to a ConfigMap. The error of an update is that of handle.
func copySelector(handle func(error) error) sync {
	return func(ctx context.Context, c client.Client, service *corev1.Service) error {
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: service.Namespace, Name: service.Name}}
		err := c.Get(ctx, client.ObjectKeyFromObject(config), config)
		found := err == nil
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if found && maps.Equal(config.Data, service.Spec.Selector) {
			return nil
		}
		config.Data = service.Spec.Selector
		if err := controllerutil.SetControllerReference(service, config, c.Scheme()); err != nil {
			return err
		}
		if !found {
			return client.IgnoreAlreadyExists(c.Create(ctx, config))
		}
		return handle(c.Update(ctx, config))
	}
}

// createOnce creates a ConfigMap with a generated name unless list finds one.
func createOnce(find func(context.Context, client.Client, *corev1.Service) (bool, error)) sync {
	return func(ctx context.Context, c client.Client, service *corev1.Service) error {
		if found, err := find(ctx, c, service); found || err != nil {
			return err
		}
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: service.Namespace, GenerateName: service.Name + "-", Labels: map[string]string{"of": service.Name},
		}}
		if err := controllerutil.SetControllerReference(service, config, c.Scheme()); err != nil {
			return err
		}
		if err := c.Create(ctx, config); err != nil {
			return err
		}
		service.Annotations = map[string]string{"config": config.Name}
		return c.Update(ctx, service)
	}
}

func byLabel(ctx context.Context, c client.Client, service *corev1.Service) (bool, error) {
	configs := &corev1.ConfigMapList{}
	err := c.List(ctx, configs, client.InNamespace(service.Namespace), client.MatchingLabels{"of": service.Name})
	return len(configs.Items) > 0, err
}

func byAnnotation(_ context.Context, _ client.Client, service *corev1.Service) (bool, error) {
	return service.Annotations["config"] != "", nil
}

func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// noted creates a ConfigMap with a name that follows from the service.
func noted() sync {
	return copySelector(func(err error) error { return err })
}

// record finds a failure of a scenario, and returns a file with what the recorder of the last process has of it.
func record(t *testing.T, s converge.Scenario) (file string, original *converge.Failure) {
	t.Helper()
	setup := s.Setup
	var last *recorder.Recorder
	s.Setup = func(mgr manager.Manager) error {
		last = recorder.New(recorder.Options{Objects: true}) // its memory ends with the process
		observe.Of(mgr).Add(last)
		return setup(mgr)
	}
	report, err := converge.Check(t, s, converge.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	if report.Failure == nil {
		t.Fatal("the reconciler has no bug")
	}
	found, ok := last.Recording("service", types.NamespacedName{Namespace: "default", Name: "a"})
	if !ok {
		t.Fatal("there is no recording")
	}
	return writeRecording(t, found), report.Failure
}

func writeRecording(t *testing.T, r recording.Recording) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "recording.json")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := recording.Write(file, r); err != nil {
		t.Fatal(err)
	}
	return name
}

func service(selector string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": selector}, Ports: []corev1.ServicePort{{Port: 80}},
		},
	}
}

func selecting(app string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": app} }
}

// only disables all faults but one.
func only(fault converge.Fault) map[converge.Fault]string {
	without := map[converge.Fault]string{}
	for _, f := range []converge.Fault{
		converge.FaultCrashBefore, converge.FaultCrashAfter, converge.FaultTimeoutApplied, converge.FaultTimeoutLost,
		converge.FaultTooManyRequests, converge.FaultServerError, converge.FaultConflict, converge.FaultExists,
		converge.FaultTaken, converge.FaultDeleted, converge.FaultRecreated, converge.FaultHandOver, converge.FaultLagRead,
		converge.FaultLagReconcile, converge.FaultLagLong, converge.FaultRelist, converge.FaultResync,
		converge.FaultListOrder, converge.FaultRestart, converge.FaultMeanwhile, converge.FaultOvertaken, converge.FaultLate,
		converge.FaultEarly, converge.FaultChildDeleted, converge.FaultFlap,
	} {
		if f != fault {
			without[f] = "the test is about another fault"
		}
	}
	return without
}

// TestFromRecording_doesItHappenAgain records failures, and expects the same violation from the recording, and none
// from a reconciler without the bug.
func TestFromRecording_doesItHappenAgain(t *testing.T) {
	for _, tc := range []struct {
		name           string
		buggy, correct sync
		fault          converge.Fault
		at             string
	}{
		{
			"a write that conflicts", copySelector(ignoreConflict), noted(),
			converge.FaultConflict, "update ConfigMap default/a",
		},
		{
			"a stale read", createOnce(byLabel), noted(),
			converge.FaultLagReconcile, "event added ConfigMap default/a-*",
		},
		{
			"a call that times out and took effect", createOnce(byAnnotation), noted(),
			converge.FaultTimeoutApplied, "create ConfigMap default/a-",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file, original := record(t, converge.Scenario{
				Scheme: clientgoscheme.Scheme, For: &corev1.Service{}, Setup: tc.buggy.setup(), Without: only(tc.fault),
				Steps: converge.Lifecycle(service("one"), selecting("two")),
			})
			if diff := cmp.Diff([]string{string(tc.fault) + " at " + tc.at}, original.Faults); diff != "" {
				t.Fatalf("the recorded faults are others (-want +got):\n%s", diff)
			}
			again := check(t, file, tc.buggy.setup(), only(tc.fault))
			if again.Failure == nil {
				content, _ := os.ReadFile(file)
				t.Fatalf("no failure: %s\n%s", again.Certificate, content)
			}
			t.Logf("%s\n%s", again.Certificate.Recorded, again.Failure)
			if again.Failure.Violation.Oracle != original.Violation.Oracle {
				t.Errorf("oracle %s, want %s", again.Failure.Violation.Oracle, original.Violation.Oracle)
			}
			if diff := cmp.Diff(original.Faults, again.Failure.Faults); diff != "" {
				t.Errorf("faults (-recorded +repeated):\n%s", diff)
			}
			if again.Certificate.Singles > 0 {
				t.Error("the failure was not found by the recording")
			}
			if report := check(t, file, tc.correct.setup(&corev1.ConfigMap{}), nil); report.Failure != nil {
				t.Errorf("false alarm: %s", report.Failure)
			}
		})
	}
}

func check(
	t *testing.T, file string, setup func(manager.Manager) error, without map[converge.Fault]string,
) *converge.Report {
	t.Helper()
	scenario, err := converge.FromRecording(file, converge.Scenario{
		Scheme: clientgoscheme.Scheme, Setup: setup, Without: without,
	})
	if err != nil {
		t.Fatal(err)
	}
	report, err := converge.Check(t, scenario, converge.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestFromRecording_whatIsWrong tests the errors for files that make no scenario.
func TestFromRecording_whatIsWrong(t *testing.T) {
	unknown := recording.Ref{Group: "example.com", Version: "v1", Kind: "Database", Name: "a"}
	known := recording.Ref{Version: "v1", Kind: "Service", Namespace: "default", Name: "a"}
	answer := []recording.Object{
		{Ref: unknown, ResourceVersion: "1", Content: []byte(`{"spec":{}}`)},
		{Ref: known, ResourceVersion: "1", Content: []byte(`{"spec":{"ports":7}}`)},
	}
	foreign := []recording.Run{{
		Outcome: "NoOp", Calls: []recording.Call{{Verb: "get", Object: unknown, Objects: answer}},
	}}
	for _, tc := range []struct {
		name      string
		recording recording.Recording
		scenario  converge.Scenario
		want      []string
	}{
		{"another version", recording.Recording{Version: 9}, converge.Scenario{Scheme: clientgoscheme.Scheme}, []string{
			"version must be 1, got 9", "recording.json",
		}},
		{"no scheme", recording.Recording{Version: 1, Object: known}, converge.Scenario{}, []string{"Scheme is required"}},
		{
			"an unknown kind",
			recording.Recording{Version: 1, Object: unknown},
			converge.Scenario{Scheme: clientgoscheme.Scheme},
			[]string{"does not have example.com/v1, Kind=Database"},
		},
		{
			"nothing was read",
			recording.Recording{Version: 1, Object: known},
			converge.Scenario{Scheme: clientgoscheme.Scheme},
			[]string{"no call has read or written Service default/a"},
		},
		{
			"objects of unknown kinds",
			recording.Recording{Version: 1, Object: known, Runs: foreign},
			converge.Scenario{Scheme: clientgoscheme.Scheme},
			[]string{
				"runs[0].calls[0].objects[0] Database a: the scheme of the scenario does not have example.com/v1, Kind=Database",
				"runs[0].calls[0].objects[1]: content: json",
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := converge.FromRecording(writeRecording(t, tc.recording), tc.scenario)
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q", err, want)
				}
			}
		})
	}
	if _, err := converge.FromRecording("missing.json", converge.Scenario{}); err == nil ||
		!strings.Contains(err.Error(), "missing.json") {
		t.Errorf("error %v, want the name of the file", err)
	}
}
