// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/tracker"
)

const (
	untilChange = "halted until a tracked object changes"
	retrying    = "halted several times in a row, retrying with back-off"
)

// theme returns a step that tracks a ConfigMap and returns err, whether or not the ConfigMap exists.
func theme(name string, err error) *syncReconciler {
	return &syncReconciler{Name: "Theme", Sync: func(ctx context.Context, r *fixture.Resource) error {
		key := client.ObjectKey{Namespace: r.Namespace, Name: name}
		got := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, &corev1.ConfigMap{})
		return errors.Join(client.IgnoreNotFound(got), err)
	}}
}

// themes returns a step that tracks ConfigMaps by label. No ConfigMap has the label.
func themes(err error) *syncReconciler {
	return &syncReconciler{Sync: func(ctx context.Context, _ *fixture.Resource) error {
		got := reconcilers.RetrieveConfigOrDie(ctx).TrackAndList(ctx, &corev1.ConfigMapList{}, client.MatchingLabels{
			"theme": "",
		})
		return errors.Join(got, err)
	}}
}

func halting() *syncReconciler {
	return &syncReconciler{
		Sync: func(context.Context, *fixture.Resource) error { return reconcilers.ErrHaltSubReconcilers },
	}
}

// untracked is a tracker that rejects every reference.
type untracked struct{ tracker.Tracker }

func (untracked) TrackReference(tracker.Reference, client.Object) error { return errTest }

func TestHalt_IsNotRetriedWhileItWaitsForTrackedObjects(t *testing.T) {
	halt, durable := reconcilers.ErrHaltSubReconcilers, reconcilers.ErrDurable
	turn := &forEach{Items: items("a"), Reconciler: theme("missing", nil)}
	retry, wait := requeue, reconcilers.Result{RequeueAfter: time.Hour, Priority: new(handler.LowPriority)}
	w := newWorld(t)
	remote := newManager(t, w, newEventCache(w.Scheme))
	watch := func(opts ...builder.WatchesOption) func(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
		return func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
			bldr.Watches(&corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx), opts...)
			return nil
		}
	}
	filter := func(p predicate.Predicate) func(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
		return watch(builder.WithPredicates(p))
	}
	for name, tc := range map[string]struct {
		step   subReconciler
		setup  func(context.Context, reconcilers.Manager, *reconcilers.Builder) error // defaults to watch
		change func(r *resourceReconciler)
		want   reconcilers.Result
	}{
		"missing":                          {step: theme("missing", halt), want: wait},
		"missing, durable":                 {step: theme("missing", durable), want: wait},
		"missing, joined to another error": {step: theme("missing", errors.Join(errTest, halt)), want: wait},
		"missing, in a nested step": {
			step: sequence{always{nothing(), sequence{nothing(), theme("missing", halt)}}, never(t)}, want: wait,
		},
		"missing, in a loop": {
			step: &forEach{Items: items("a", "b"), Reconciler: theme("missing", halt)}, want: wait,
		},
		"missing, in another loop": {
			step: &while{Condition: isTrue, Reconciler: theme("missing", halt)}, want: wait,
		},
		"missing, as well as another":   {step: always{theme("missing", halt), theme("missing-too", halt)}, want: wait},
		"missing, after a found object": {step: sequence{theme("found", nil), theme("missing", halt)}, want: wait},
		"found, durable":                {step: theme("found", durable), want: wait},
		"list, durable":                 {step: themes(durable), want: wait},
		"watched, controller is yielded": {
			step: theme("missing", halt), change: func(*resourceReconciler) {}, want: wait,
		},
		"predicate for updates": {
			step: theme("missing", halt), setup: filter(predicate.GenerationChangedPredicate{}), want: wait,
		},
		"predicate for updates, functions": {step: theme("missing", halt), setup: filter(predicate.Funcs{}), want: wait},
		"predicate for updates, durable": {
			step: theme("found", durable), setup: filter(predicate.LabelChangedPredicate{}), want: retry,
		},
		"unknown predicate": {
			step: theme("missing", halt), setup: filter(predicate.NewPredicateFuncs(func(client.Object) bool { return true })),
			want: retry,
		},
		"predicate for updates, and another": {
			step:  theme("missing", halt),
			setup: filter(predicate.And[client.Object](predicate.ResourceVersionChangedPredicate{})), want: retry,
		},
		"predicate of the controller": {step: theme("missing", halt), want: retry, setup: func(
			ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder,
		) error {
			bldr.WithEventFilter(predicate.NewPredicateFuncs(func(client.Object) bool { return true }))
			return watch()(ctx, mgr, bldr)
		}},
		// The step may wait for another effect on the found object.
		"found and halted": {step: theme("found", halt), want: retry},
		// The step may accept an empty list.
		"an empty list":                         {step: themes(halt), want: retry},
		"nothing is tracked":                    {step: halting(), want: retry},
		"nothing is tracked, durable":           {step: returning(reconcilers.Result{}, durable), want: retry},
		"missing in a step that succeeds":       {step: sequence{theme("missing", nil), halting()}, want: retry},
		"missing in a part that succeeds":       {step: always{theme("missing", nil), halting()}, want: retry},
		"missing in an iteration that succeeds": {step: sequence{turn, halting()}, want: retry},
		"missing, and something else":           {step: always{theme("missing", halt), halting()}, want: retry},
		"missing, Requeue is set": {
			step: sequence{always{theme("missing", halt), returning(retry, nil)}}, want: retry,
		},
		"missing, RequeueAfter is set": {
			step: always{theme("missing", halt), returning(reconcilers.Result{RequeueAfter: time.Minute}, nil)},
			want: reconcilers.Result{RequeueAfter: time.Minute},
		},
		"missing, not watched": {step: theme("missing", halt), want: retry, setup: func(
			context.Context, reconcilers.Manager, *reconcilers.Builder,
		) error {
			return nil
		}},
		"missing, watched in another cluster": {step: theme("missing", halt), want: retry, setup: func(
			ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder,
		) error {
			bldr.WatchesRawSource(
				source.Kind[client.Object](remote.GetCache(), &corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx)),
			)
			return nil
		}},
		"missing, not tracked": {
			step: theme("missing", halt), want: retry,
			change: func(r *resourceReconciler) { r.Config.Tracker = untracked{r.Config.Tracker} },
		},
		"quiet": {step: theme("missing", reconcilers.ErrQuiet), want: retry},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newResource(settled), newConfigMap("found"))
			mgr := newManager(t, w, newEventCache(w.Scheme))
			r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: tc.step, Setup: tc.setup}
			if r.Setup == nil {
				r.Setup = watch()
			}
			if tc.change != nil {
				tc.change(r)
			}
			_, err := r.SetupWithManagerYieldingController(context.Background(), mgr)
			wantErr(t, nil, err)
			got, err := r.ReconcileManaged(context.Background(), testRequest)
			wantErr(t, nil, err)
			equal(t, "result", tc.want, got)
		})
	}

	t.Run("in another cluster", func(t *testing.T) {
		w := newWorld(t, newResource(settled))
		mgr := newManager(t, w, newEventCache(w.Scheme))
		step := theme("missing", halt)
		step.Setup = func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
			bldr.WatchesRawSource(
				source.Kind[client.Object](remote.GetCache(), &corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx)),
			)
			return nil
		}
		config := configFor(w, mgr)
		r := &resourceReconciler{Config: config, Reconciler: inCluster(config.WithCluster(remote), step)}
		wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
		got, err := r.ReconcileManaged(context.Background(), testRequest)
		wantErr(t, nil, err)
		equal(t, "result", wait, got)
	})
	t.Run("without a sync period the default is used", func(t *testing.T) {
		w := newWorld(t, newResource(settled))
		mgr := newManager(t, w, newEventCache(w.Scheme))
		config := reconcilers.NewConfig(mgr, nil, 0)
		config.Tracker, config.Recorder = w.Config.Tracker, w.Config.Recorder
		r := &resourceReconciler{Config: config, Setup: watch(), Reconciler: theme("missing", halt)}
		wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
		got, err := r.ReconcileManaged(context.Background(), testRequest)
		wantErr(t, nil, err)
		want := reconcilers.Result{RequeueAfter: 10 * time.Hour, Priority: new(handler.LowPriority)}
		equal(t, "result", want, got)
	})
	t.Run("called by a test", func(t *testing.T) {
		w := newWorld(t, newResource(settled))
		mgr := newManager(t, w, newEventCache(w.Scheme))
		r := &resourceReconciler{Config: configFor(w, mgr), Setup: watch(), Reconciler: theme("missing", halt)}
		wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
		got, err := r.Reconcile(context.Background(), testRequest)
		wantErr(t, nil, err)
		equal(t, "result", retry, got)
	})
}

func TestHalt_IsLoggedOnce(t *testing.T) {
	w := newWorld(t, newResource(settled), newConfigMap("found"))
	mgr := newManager(t, w, newEventCache(w.Scheme))
	log, lines := newLog(0)
	ctx := withLog(context.Background(), log)
	var step subReconciler
	r := &resourceReconciler{
		Name: "HaltIsLoggedOnce", Config: configFor(w, mgr),
		Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
			bldr.Watches(&corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx))
			return nil
		},
		Reconciler: &withConfig{Config: sameConfig, Reconciler: deferred(func() subReconciler { return step })},
	}
	wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
	ofController := map[string]string{"controller": r.Name}
	waits := apitest.Counting(t, "trueup_halted_waits_total", ofController)
	retries := apitest.Counting(t, "trueup_halted_retries_total", ofController)
	for _, pass := range []struct {
		what           string
		step           subReconciler
		times          int
		logged         []string
		waits, retries float64
	}{
		{"waits", theme("missing", reconcilers.ErrHaltSubReconcilers), 7, []string{untilChange}, 7, 0},
		{"retries", theme("found", reconcilers.ErrHaltSubReconcilers), 4, nil, 7, 4},
		{"retries several times", theme("found", reconcilers.ErrHaltSubReconcilers), 3, []string{retrying}, 7, 7},
		{"waits again", theme("missing", reconcilers.ErrHaltSubReconcilers), 2, []string{untilChange}, 9, 7},
		{"does not halt", theme("missing", nil), 1, nil, 9, 7},
		{"waits once more", theme("missing", reconcilers.ErrHaltSubReconcilers), 2, []string{untilChange}, 11, 7},
	} {
		before := len(lines.messages())
		step = pass.step
		for range pass.times {
			_, err := r.ReconcileManaged(ctx, testRequest)
			wantErr(t, nil, err)
		}
		equal(t, "messages when the step "+pass.what, pass.logged, lines.messages()[before:])
		equal(t, "counted waits when the step "+pass.what, pass.waits, waits())
		equal(t, "counted retries when the step "+pass.what, pass.retries, retries())
	}
	for _, line := range strings.Split(lines.all(), "\n") {
		if !strings.HasPrefix(line, "HaltIsLoggedOnce/WithConfig/Theme ") {
			t.Errorf("message without its step: %s", line)
		}
	}
	contains(t, lines.all(), `"tracked"="ConfigMap default/missing"`)
}

func TestHalt_DescribesReferences(t *testing.T) {
	all, err := labels.Parse("app=shop")
	wantErr(t, nil, err)
	for want, ref := range map[string]tracker.Reference{
		"Secret default/db":                  {Kind: "Secret", Namespace: "default", Name: "db"},
		"Issuer.cert-manager.io letsencrypt": {APIGroup: "cert-manager.io", Kind: "Issuer", Name: "letsencrypt"},
		"ConfigMap with labels app=shop":     {Kind: "ConfigMap", Selector: all},
		"Secret with labels app=shop in web": {Kind: "Secret", Namespace: "web", Selector: all},
	} {
		equal(t, "text", want, reconcilers.Describe(ref))
	}
}

// deferred is a custom subreconciler that is chosen for each request.
type deferred func() subReconciler

func (deferred) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	return nil
}

func (d deferred) Reconcile(ctx context.Context, resource *fixture.Resource) (reconcilers.Result, error) {
	return d().Reconcile(ctx, resource)
}
