// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/examples/website"
	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/reconcilers"
	"trueup.dev/sandbox"
)

// region tracking-get
func ThemeReconciler() reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.SyncReconciler[*websitev1.Website]{
		Name: "Theme",
		Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
			bldr.Watches(&corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx)) // without it, changes trigger nothing
			return nil
		},
		Sync: func(ctx context.Context, site *websitev1.Website) error {
			theme := &corev1.ConfigMap{}
			key := client.ObjectKey{Namespace: site.Namespace, Name: site.Spec.ThemeRef.Name}
			err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, theme)
			if apierrs.IsNotFound(err) {
				// The theme is tracked nevertheless: the site is reconciled when it is created.
				site.Status.ConditionManager(ctx).MarkFalse(
					websitev1.ConditionContentReady, "ThemeNotFound", "ConfigMap %q does not exist", key.Name,
				)
				return reconcilers.ErrHaltSubReconcilers
			}
			return err
		},
	}
}

// endregion

func Example_trackAndGet() {
	site := newSite()
	site.Spec.ThemeRef = &websitev1.ThemeReference{Name: "paper"}
	cluster := newCluster(site)
	reconcileOnce(cluster, ThemeReconciler())

	theme := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "paper"}}
	observers, err := cluster.Tracker.GetObservers(theme)
	fmt.Println(observers, err)
	// Output:
	// [default/bakery] <nil>
}

func Example_trackAndList() {
	cluster := newCluster(newSite())
	reconcileOnce(cluster, &reconcilers.SyncReconciler[*websitev1.Website]{
		// region tracking-list
		Sync: func(ctx context.Context, site *websitev1.Website) error {
			adverts := &corev1.ConfigMapList{}
			return reconcilers.RetrieveConfigOrDie(ctx).TrackAndList(ctx, adverts,
				client.InNamespace(site.Namespace), client.MatchingLabels{"demo.trueup.dev/advert": "true"})
		},
		// endregion
	})
	later := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "christmas", Labels: map[string]string{"demo.trueup.dev/advert": "true"},
	}}
	observers, err := cluster.Tracker.GetObservers(later)
	fmt.Println(observers, err)
	// Output:
	// [default/bakery] <nil>
}

// The log lines in tracking.md come from controllers on a real API.
func TestTrackingLogs(t *testing.T) {
	watched := ThemeReconciler()
	unwatched := ThemeReconciler().(*reconcilers.SyncReconciler[*websitev1.Website])
	unwatched.Setup = nil
	showPrinted(t, "tracking.md", map[string]string{
		"tracking-unwatched": trackingLog(t, unwatched, "the kind of a tracked object is not watched"),
		"tracking-waits":     trackingLog(t, watched, "halted until a tracked object changes"),
	})
}

var reconcileID = regexp.MustCompile(` "reconcileID"="[^"]*"`)

// trackingLog runs a controller with a site whose theme does not exist, and returns the log line with the text. The
// namespace is the namespace of the guide, and IDs are removed.
func trackingLog(t *testing.T, r reconcilers.SubReconciler[*websitev1.Website], text string) string {
	t.Helper()
	env := sandbox.ForTest(t, sandbox.TestOptions{CRDs: []any{website.CRDs()}})
	log := &loggedLine{text: text, found: make(chan string, 1)}
	mgr, err := ctrl.NewManager(env.RESTConfig(), ctrl.Options{
		Scheme: newScheme(), Metrics: metricsserver.Options{BindAddress: "0"}, Logger: funcr.New(log.add, funcr.Options{}),
		Controller: config.Controller{SkipNameValidation: new(true)},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{env.Namespace: {}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	root := &reconcilers.ResourceReconciler[*websitev1.Website]{
		Name: "Website", Reconciler: r, SkipStatusUpdate: true, Config: reconcilers.NewConfig(mgr, nil, 10*time.Hour),
	}
	if err := root.SetupWithManager(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	site := newSite()
	site.ObjectMeta = metav1.ObjectMeta{Namespace: env.Namespace, Name: site.Name}
	site.Spec.ThemeRef = &websitev1.ThemeReference{Name: "paper"}
	api, err := client.New(env.RESTConfig(), client.Options{Scheme: newScheme()})
	if err != nil {
		t.Fatal(err)
	}
	if err := api.Create(t.Context(), site); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	defer func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}()
	select {
	case line := <-log.found:
		return strings.ReplaceAll(reconcileID.ReplaceAllString(line, ""), env.Namespace, "default") + "\n"
	case <-time.After(time.Minute):
		t.Fatalf("no log line contains %q", text)
		return ""
	}
}

// loggedLine waits for a line of a log.
type loggedLine struct {
	text  string
	once  sync.Once
	found chan string
}

func (l *loggedLine) add(prefix, args string) {
	if strings.Contains(args, l.text) {
		l.once.Do(func() { l.found <- prefix + ": " + args })
	}
}
