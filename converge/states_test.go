// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge/internal/walk"
)

func TestStatesOfCorrectReconciler(t *testing.T) {
	report := checkStates(t, pageScenario(fillPage))
	if report.Failure != nil {
		t.Fatal(report.Failure)
	}
	t.Log(report.Certificate, report.Certificate.Elapsed)
	if c := report.Certificate; c.Changed != c.Properties || c.Values < 10 || c.Rejected == 0 || c.Pairs == 0 ||
		c.Walks == 0 && !raceDetector || c.Faults == 0 {
		t.Errorf("%+v", c)
	}
}

// A reconciler that merges vars never removes one.
func TestStatesFindsWhatIsNotRemoved(t *testing.T) {
	report := checkStates(t, pageScenario(func(config *corev1.ConfigMap, page *Page) error {
		old := config.Data
		if err := fillPage(config, page); err != nil {
			return err
		}
		delete(config.Data, "vars")
		merged := map[string]string{}
		for key, value := range old {
			if strings.HasPrefix(key, "var-") {
				merged[key] = value
			}
		}
		for key, value := range page.Spec.Vars {
			merged["var-"+key] = value
		}
		maps.Copy(config.Data, merged)
		return nil
	}))
	f := report.Failure
	if f == nil {
		t.Fatal("not found")
	}
	t.Log(f, f.Replay)
	if f.Violation.Oracle != OraclePath || len(f.Walk) != 2 {
		t.Errorf("%s", f)
	}
}

// pageWithoutColor ignores a property, and keeps a map that only grows.
func pageWithoutColor(config *corev1.ConfigMap, page *Page) error {
	old := config.Data["vars"]
	if err := fillPage(config, page); err != nil {
		return err
	}
	delete(config.Data, "color")
	if len(old) > len(config.Data["vars"]) {
		config.Data["vars"] = old
	}
	return nil
}

func TestStatesDeclared(t *testing.T) {
	vars := HistoryDependent{Object: &corev1.ConfigMap{}, Field: "data.vars", Reason: "it only grows"}
	for name, test := range map[string]struct {
		space  Space
		oracle Oracle
	}{
		"nothing": {Space{}, OraclePath},
		"a field": {Space{HistoryDependent: []HistoryDependent{vars}}, OracleEffect},
		"an object": {
			Space{HistoryDependent: []HistoryDependent{{Object: vars.Object, Reason: "it stays"}}}, OracleEffect,
		},
		"a skipped property": {Space{Skip: map[string]string{"spec.vars": "they are fixed"}}, OracleEffect},
		"an ignored property": {
			Space{HistoryDependent: []HistoryDependent{vars}, Ignored: map[string]string{"spec.color": "paint"}}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := pageScenario(pageWithoutColor)
			s.Space = test.space
			report := checkStates(t, s)
			switch f := report.Failure; {
			case f == nil && test.oracle != "":
				t.Errorf("found nothing, want %s", test.oracle)
			case f != nil && f.Violation.Oracle != test.oracle:
				t.Errorf("want %q, got %s", test.oracle, f)
			case f == nil && !strings.Contains(report.Certificate.String(), "spec.color need not have an effect: paint"):
				t.Errorf("the reason is not in the certificate: %s", report.Certificate)
			}
		})
	}
}

// Labels of the object are passed on to the ConfigMap. This is advice, unless the labels are skipped, or one remains.
func TestStatesOfMetadata(t *testing.T) {
	for name, test := range map[string]struct {
		merged, skipped bool
		oracle          Oracle
	}{
		"passed on": {}, "skipped": {skipped: true}, "merged": {merged: true, oracle: OraclePath},
	} {
		t.Run(name, func(t *testing.T) {
			s := titleScenario(titler{})
			s.New = func(e Env) reconcile.Reconciler {
				return &pager{e.Client, func(config *corev1.ConfigMap, page *Page) error {
					if !test.merged {
						config.Labels = nil
					}
					for key, value := range page.Labels {
						metav1.SetMetaDataLabel(&config.ObjectMeta, key, value)
					}
					return fillPage(config, page)
				}}
			}
			if test.skipped {
				s.Space.Skip["metadata.labels"] = "users set labels only once"
			}
			report := checkStates(t, s)
			if f := report.Failure; (f != nil) != test.merged || f != nil && f.Violation.Oracle != test.oracle {
				t.Fatalf("want %q, got %s", test.oracle, f)
			}
			if got := len(report.Certificate.Advice) > 0; got == (test.skipped || test.merged) {
				t.Errorf("got advice %q", report.Certificate.Advice)
			}
		})
	}
}

func TestStatesOfInvalidSpaces(t *testing.T) {
	for want, space := range map[string]Space{
		`unknown property "spec.none" in Space.Skip`:          {Skip: map[string]string{"spec.none": "x"}},
		`Space.Skip[spec.size]: a reason is required`:         {Skip: map[string]string{"spec.size": ""}},
		`Space.Ignored[spec.size]: a reason is required`:      {Ignored: map[string]string{"spec.size": ""}},
		`Space.HistoryDependent[0]: a reason is required`:     {HistoryDependent: []HistoryDependent{{Field: "data"}}},
		`Space.Values[spec.size]: json: unsupported type`:     {Values: map[string][]any{"spec.size": {func() {}}}},
		`States requires a Page in Given, or an Apply of one`: {},
	} {
		s := pageScenario(fillPage)
		s.Space = space
		if strings.HasPrefix(want, "States requires") {
			s.Steps = Steps(Settle())
		}
		if _, err := CheckStates(t, s, StatesOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
}

// A failure has the same steps when it is replayed, and its replay string leads to the same walk.
func TestStatesReplay(t *testing.T) {
	s := pageScenario(pageWithoutColor)
	first := checkStates(t, s).Failure
	w, seed, faults, err := walk.Decode(first.Replay)
	if err != nil || seed != 1 || len(faults) > 0 {
		t.Fatal(seed, faults, err)
	}
	if again := w.Encode(seed, faults); again != first.Replay {
		t.Errorf("got %s, want %s", again, first.Replay)
	}
	x := mustStates(t, s)
	x.learn()
	v, _, failed := x.checkWrites(w)
	if !failed || v.String() != first.Violation.String() {
		t.Errorf("got %v, want %s", v, first.Violation)
	}
	if second := x.record(w, v); second.String() != first.String() {
		t.Errorf("the timeline differs:\n%s\n%s", second, first)
	}
}

// The kind has no definition: its properties are the properties of its Go type. The controller registers itself.
func TestStatesOfController(t *testing.T) {
	s := controllerScenario(false)
	const other = "only data.value is copied"
	s.Space.Ignored = map[string]string{"data.added": other, "immutable": other, "stringData": other, "type": other}
	report := checkStates(t, s)
	if report.Failure != nil {
		t.Fatal(report.Failure)
	}
	t.Log(report.Certificate)
	if c := report.Certificate; c.Changed == 0 || c.Faults == 0 {
		t.Errorf("%+v", c)
	}
}

// TestStatesHints checks the message and the hint of failures that a change of the spec leads to.
func TestStatesHints(t *testing.T) {
	errFixed, errColor := errors.New("the title cannot change"), errors.New("the color is unknown")
	for name, test := range map[string]struct {
		fill func(config *corev1.ConfigMap, page *Page) error
		// fails is returned for each page with a color.
		fails error
		// message is a part of the message and the details, and hint a part of the hint.
		message, hint string
	}{
		"each reconcile fails": {
			fill: func(config *corev1.ConfigMap, page *Page) error {
				if title, ok := config.Data["title"]; ok && title != page.Spec.Title {
					return errFixed
				}
				return fillPage(config, page)
			},
			message: "compared with a new object; the last reconcile fails: the title cannot change",
			hint:    "see the error of the last one",
		},
		"only created": {
			fill: func(config *corev1.ConfigMap, page *Page) error {
				if config.Data != nil {
					return nil
				}
				return fillPage(config, page)
			},
			message: "ConfigMap default/a: data.", hint: "an existing object keeps a value of an earlier spec",
		},
		"only added": {
			fill: func(config *corev1.ConfigMap, page *Page) error {
				data := maps.Clone(config.Data)
				if err := fillPage(config, page); err != nil {
					return err
				}
				if config.Data["theme-"+page.Spec.Theme] = "yes"; data != nil {
					maps.Copy(data, config.Data)
					config.Data = data
				}
				return nil
			},
			message: " should not be set", hint: "a value of an earlier spec remains",
		},
		"no effect": {
			fill: pageWithoutColorAlone, message: "spec.color: tried", hint: "the reconciler does not read the property",
		},
		"no effect but an error": {
			fill: pageWithoutColorAlone, fails: errColor, message: "; the last reconcile fails: the color is unknown",
			hint: "the reconciler does not read the property",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := pageScenario(test.fill)
			inner := s.New
			s.New = func(e Env) reconcile.Reconciler {
				r := inner(e)
				return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
					result, err := r.Reconcile(ctx, req)
					page := &Page{}
					if err != nil || test.fails == nil || e.Client.Get(ctx, req.NamespacedName, page) != nil || page.Spec.Color == "" {
						return result, err
					}
					return result, test.fails
				})
			}
			f := checkStates(t, s).Failure
			if f == nil {
				t.Fatal("not found")
			}
			text := strings.Join(append(f.Violation.Details, f.Violation.Message), "\n")
			if !strings.Contains(text, test.message) {
				t.Errorf("got %q, want %q", text, test.message)
			}
			if !strings.Contains(f.Hint, test.hint) || !strings.Contains(f.String(), "hint: "+f.Hint) {
				t.Errorf("got %q, want %q in:\n%s", f.Hint, test.hint, f)
			}
		})
	}
}

// pageWithoutColorAlone ignores a property.
func pageWithoutColorAlone(config *corev1.ConfigMap, page *Page) error {
	err := fillPage(config, page)
	delete(config.Data, "color")
	return err
}

// TestStatesOfZero has a size that may be 0. A reconciler that replaces it by a default, because it cannot tell it from
// no size, gets advice.
func TestStatesOfZero(t *testing.T) {
	for name, test := range map[string]struct {
		least int64
		want  []string
	}{
		"0 is shown": {},
		"0 is taken for no size": {2, []string{
			`spec.size = 0 has the same effect as no value: ConfigMap default/a: data.size is "2", and 1 if 1 is written. ` +
				"A pointer tells them apart, or a minimum in the schema rejects 0",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := titleScenario(titler{})
			definition := pageDefinition()
			specs := &definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties
			spec := (*specs)["spec"]
			size := spec.Properties["size"]
			size.Minimum = new(0.0)
			spec.Properties["size"] = size
			(*specs)["spec"] = spec
			s.CRDs = []client.Object{definition}
			s.New = func(e Env) reconcile.Reconciler {
				return &pager{e.Client, func(config *corev1.ConfigMap, page *Page) error {
					if page.Spec.Size == 0 {
						page.Spec.Size = test.least
					}
					return fillPage(config, page)
				}}
			}
			s.Steps = Lifecycle(&Page{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Spec: PageSpec{Title: "hello", Size: 3},
			})
			delete(s.Space.Skip, "spec.size")
			report := checkStates(t, s)
			if report.Failure != nil {
				t.Fatal(report.Failure)
			}
			if diff := cmp.Diff(test.want, report.Certificate.Advice); diff != "" {
				t.Errorf("advice (-want +got):\n%s", diff)
			}
		})
	}
}

// generic is a type whose name in Go is not the name of its kind.
type generic[T any] struct{ corev1.ConfigMap }

// TestHistoryDependentOfGenericType finds the kind of a field in the scheme.
func TestHistoryDependentOfGenericType(t *testing.T) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Version: "v1", Kind: "Settings"}, &generic[Page]{})
	space := &specSpace{plan: &plan{input: input{Scenario: Scenario{Scheme: scheme}}}}
	h := HistoryDependent{Object: &generic[Page]{}, Field: "data"}
	if !space.isFor(h, "Settings default/a") || space.isFor(h, "ConfigMap default/a") {
		t.Error("the kind is not the one of the scheme")
	}
	if got, want := h.name(), "generic[Page] data"; got != want {
		t.Errorf("got the name %q, want %q", got, want)
	}
}
