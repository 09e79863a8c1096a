// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph/rbac"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/reconcilers"
	"trueup.dev/testing/internal/cluster"
	"trueup.dev/testing/internal/literal"
	rtime "trueup.dev/time"
	"trueup.dev/validation"
)

// RunOption configures how cases run. Options are the last arguments of the Run methods of cases and suites.
type RunOption interface{ applyTo(options *runOptions) }

// runOptions are the settings of RunOptions.
type runOptions struct {
	parallel  bool
	realistic bool
	// permissions records what the main config needs. Optional.
	permissions *rbac.Recorder
	// clusters are the clusters to run on, by the name of the config. Empty for the API in memory.
	clusters map[string]*cluster.Cluster
}

type runOption func(options *runOptions)

func (o runOption) applyTo(options *runOptions) { o(options) }

// Parallel runs each case in parallel with others, see [testing.T.Parallel]. Objects of
// cases are copied before they are used. Values in Metadata and the variables of functions are shared.
//
// As with all parallel tests, Run returns before the cases of a suite have run. Release what they use with
// [testing.T.Cleanup], which waits for them, not with defer. AdditionalReconciles still run one after the other.
func Parallel() RunOption {
	return runOption(func(options *runOptions) { options.parallel = true })
}

// Realistic sets the field of this name for all configs of all cases.
func Realistic() RunOption {
	return runOption(func(options *runOptions) { options.realistic = true })
}

// caseRun has the state of a run of any kind of case.
type caseRun struct {
	options runOptions
	cancel  context.CancelFunc
	// configs are the main config of the case and, after it, the additional ones in the order of their names.
	configs []*ExpectConfig
	// turn is the turn of the case on its clusters, nil without clusters.
	turn *cluster.Turn
	// apis are the APIs in use, which must be closed.
	apis []*api
}

// startCase skips the case, or calls t.Parallel if the options ask for it, and sets defaults. The context that it
// returns has the time of the case and a logger that prints with the test, and ends with the test. The caller must
// defer the end of the run.
func startCase(
	t *testing.T, skip bool, now *time.Time, metadata *map[string]any, differ *Differ, opts []RunOption,
) (context.Context, *caseRun) {
	t.Helper()
	if skip {
		t.SkipNow()
	}
	run := &caseRun{cancel: func() {}}
	for _, opt := range opts {
		opt.applyTo(&run.options)
	}
	if run.options.parallel {
		t.Parallel()
	}

	if now.IsZero() {
		*now = time.Now()
	}
	if *metadata == nil {
		*metadata = map[string]any{}
	}
	if *differ == nil {
		*differ = DefaultDiffer
	}
	ctx := rtime.StashNow(t.Context(), *now)
	ctx = logr.NewContext(ctx, testr.New(t))
	if deadline, ok := t.Deadline(); ok {
		ctx, run.cancel = context.WithDeadline(ctx, deadline)
	}
	return ctx, run
}

// end closes the APIs in use. It is deferred first, so that CleanUp can use the configs of the case.
func (r *caseRun) end(t *testing.T) {
	t.Helper()
	r.cancel()
	r.close(t)
}

// close closes the APIs in use and releases the turn.
func (r *caseRun) close(t *testing.T) {
	t.Helper()
	if r.turn == nil {
		return
	}
	defer func() {
		r.turn.End()
		r.turn, r.apis = nil, nil
	}()
	for _, api := range r.apis {
		if t.Failed() && api.notes != nil {
			for _, line := range api.notes() {
				t.Log(line)
			}
		}
		if err := api.close(); err != nil {
			t.Errorf("unable to remove the objects of the case from the cluster: %s", err)
		}
	}
}

// prepare calls the hook of a case.
func prepare[C any](
	t *testing.T, ctx context.Context, tc *C, hook func(*testing.T, context.Context, *C) (context.Context, error),
) context.Context {
	t.Helper()
	if hook == nil {
		return ctx
	}
	prepared, err := hook(t, ctx, tc)
	if err != nil {
		t.Fatalf("error during prepare: %s", err)
	}
	if prepared == nil {
		t.Fatal("error during prepare: Prepare must return a context: the one it was called with, or one made from it")
	}
	return prepared
}

// cleanUp calls the hook of a case.
func cleanUp[C any](t *testing.T, ctx context.Context, tc *C, hook func(*testing.T, context.Context, *C) error) {
	t.Helper()
	if hook == nil {
		return
	}
	if err := hook(t, ctx, tc); err != nil {
		t.Errorf("error during clean up: %s", err)
	}
}

// open creates the configs of the case. Additional configs have the scheme and the differ of the case by default.
func (r *caseRun) open(
	t *testing.T, ctx context.Context, main *ExpectConfig, additional map[string]ExpectConfig,
) (context.Context, reconcilers.Config) {
	t.Helper()
	main.Name, main.permissions = cluster.DefaultName, r.options.permissions
	if len(r.options.clusters) > 0 {
		var err error
		if r.turn, err = cluster.TakeTurn(t.Context(), r.options.clusters); err != nil {
			t.Fatal(err)
		}
	}
	c := r.build(t, main)
	configs := make(map[string]reconcilers.Config, len(additional))
	for _, name := range slices.Sorted(maps.Keys(additional)) {
		config := additional[name]
		config.Name = name
		if config.Scheme == nil {
			config.Scheme = main.Scheme
		}
		if config.Differ == nil {
			config.Differ = main.Differ
		}
		config.Realistic = config.Realistic || main.Realistic
		configs[name] = r.build(t, &config)
	}
	return reconcilers.StashAdditionalConfigs(ctx, configs), c
}

func (r *caseRun) build(t *testing.T, config *ExpectConfig) reconcilers.Config {
	t.Helper()
	config.Realistic = config.Realistic || r.options.realistic
	if r.turn != nil {
		config.newAPI = func(c *ExpectConfig) (*api, error) {
			api, err := newClusterAPI(r.turn, c)
			if err == nil {
				r.apis = append(r.apis, api)
			}
			return api, err
		}
	}
	r.configs = append(r.configs, config)
	c, err := config.build()
	if reason, ok := errors.AsType[*cluster.SkipError](err); ok {
		t.Skipf("cannot run on a cluster: %s", reason)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// assertExpectations asserts the expectations of all configs.
func (r *caseRun) assertExpectations(t *testing.T) {
	t.Helper()
	for _, config := range r.configs {
		config.AssertExpectations(t)
	}
}

// normalizeValues returns the parts of two values to compare. The values may be objects.
func normalizeValues(c *ExpectConfig, expected, observed any) (any, any) {
	expectedObject, ok := expected.(client.Object)
	observedObject, isObject := observed.(client.Object)
	if !ok || !isObject || nilcheck.IsNil(expected) || nilcheck.IsNil(observed) {
		return expected, observed
	}
	expectedObject, observedObject = c.normalize(expectedObject, observedObject)
	return expectedObject, observedObject
}

// requireFactory fails the test if the factory is nil.
func requireFactory(t *testing.T, factory any) {
	t.Helper()
	if nilcheck.IsNil(factory) {
		t.Fatal("a factory is required")
	}
}

// requireProduct fails the test if a factory has returned nil.
func requireProduct(t *testing.T, what string, product any) {
	t.Helper()
	// A nil slice can be a reconciler: an empty Sequence.
	if nilcheck.IsNil(product) && reflect.ValueOf(product).Kind() != reflect.Slice {
		t.Fatalf("the factory must return a %s, it has returned nil", what)
	}
}

// requireValid validates the product of a factory, with all nested reconcilers.
func requireValid(t *testing.T, ctx context.Context, what string, product any) {
	t.Helper()
	validator, ok := product.(validation.Validator)
	if !ok {
		return
	}
	if err := allOf(validator.Validate(ctx)); err != nil {
		t.Fatalf("%s validation failed: %s", what, err)
	}
}

// allOf returns an error with the texts of all errors of a list, if the text of the list is the text of its first
// error. It returns an error that wraps such a list unchanged, as the wrapper adds to the text.
func allOf(err error) error {
	if list, ok := err.(interface{ Unwrap() []error }); ok {
		if all := errors.Join(list.Unwrap()...); all != nil && strings.HasPrefix(all.Error(), err.Error()) {
			return all
		}
	}
	return err
}

// mustPanic calls a function that must panic.
func mustPanic(t *testing.T, what string, call func()) {
	t.Helper()
	returned := false
	defer func() {
		t.Helper()
		// A call that ends the test by FailNow or SkipNow neither returns nor panics.
		if cause := recover(); cause != nil {
			t.Logf("%s panicked as expected: %v", what, cause)
		} else if returned {
			t.Errorf("expected %s to panic", what)
		}
	}()
	call()
	returned = true
}

// VerifyFunc makes further assertions about the result and the error of a reconciler.
type VerifyFunc func(t *testing.T, result reconcilers.Result, err error)

// outcome is the expected outcome of a call of a reconciler.
type outcome struct {
	shouldErr bool
	result    reconcilers.Result
	verify    VerifyFunc
	differ    Differ
}

func (o outcome) assert(t *testing.T, result reconcilers.Result, err error) {
	t.Helper()
	if (err != nil) != o.shouldErr {
		t.Errorf("Reconcile() error = %v, ShouldErr %v", err, o.shouldErr)
	}
	if err == nil {
		// Controllers ignore the result of a reconciler that fails.
		if diff := o.differ.Result(normalizeResult(o.result), normalizeResult(result)); diff != "" {
			failValue(t, "ExpectedResult", diff, "ExpectedResult", result)
		}
	}
	if o.verify != nil {
		o.verify(t, result, err)
	}
}

// normalizeResult clears Requeue where it has no effect.
func normalizeResult(result reconcilers.Result) reconcilers.Result {
	if result.RequeueAfter != 0 {
		result.Requeue = false //nolint:staticcheck // deprecated, but reconcilers still return it
	}
	return result
}

// assertWiring compares the wiring of a reconciler, or reports the error of its set-up.
func assertWiring(t *testing.T, expected, observed *Wiring, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("ExpectWiring: %s", err)
		return
	}
	observed.Assert(t, expected)
}

// failValue reports a difference, and prints the observed value as Go code to paste over the field, see [literal.Of].
func failValue(t *testing.T, what, diff, field string, observed any, schemes ...*runtime.Scheme) {
	t.Helper()
	t.Errorf("%s differs (%s, %s):\n%s\nobserved, as an expectation:\n%s: %s,",
		what, DiffRemovedColor.Sprint("-expected"), DiffAddedColor.Sprint("+actual"),
		strings.TrimSuffix(ColorizeDiff(diff), "\n"), field, literal.Of(observed, schemes...))
}

// suite runs cases of any kind, in order.
type suite struct {
	all, focused []suiteCase
}

type suiteCase struct {
	name string
	run  func(t *testing.T)
}

func (s *suite) add(name string, focus bool, run func(t *testing.T)) {
	tc := suiteCase{name: name, run: run}
	s.all = append(s.all, tc)
	if focus {
		s.focused = append(s.focused, tc)
	}
}

// run runs the focused cases, or all if none is focused. A focus is for work on a case: it fails the suite, so that it
// is not committed.
func (s *suite) run(t *testing.T) {
	t.Helper()
	if len(s.focused) == 0 {
		runAll(t, s.all)
		return
	}
	runAll(t, s.focused)
	names := strings.Builder{}
	for _, tc := range s.focused {
		names.WriteString("\n\t" + tc.name)
	}
	t.Errorf("%d tests out of %d are still focused, so the test suite fails%s", len(s.focused), len(s.all), names.String())
}

func runAll(t *testing.T, cases []suiteCase) {
	t.Helper()
	for _, tc := range cases {
		t.Run(tc.name, tc.run)
	}
}

// With returns a deep copy of base with the edits applied in order. It does not change base, so that all objects of a
// table can be derived from one:
//
//	GivenObjects: []client.Object{
//		rtesting.With(website, func(w *demov1.Website) {
//			w.Spec.Replicas = 3
//		}),
//	},
//
// It accepts all types with a generated DeepCopy method: objects, and parts of objects such as a PodSpec.
func With[T interface{ DeepCopy() T }](base T, edits ...func(T)) T {
	derived := base.DeepCopy()
	for _, edit := range edits {
		edit(derived)
	}
	return derived
}
