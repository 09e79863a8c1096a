// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/logging"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
	"trueup.dev/simple"
	rtesting "trueup.dev/testing"
)

// Tickets is an external system.
type Tickets interface {
	Open(ctx context.Context, about, text string) error
	Close(ctx context.Context, about string) error
}

var errBusy = errors.New("busy")

// region events-watcher
func TicketWatcher(tickets Tickets) operator.TypedWatcher[*websitev1.Website] {
	return &ticketWatcher{tickets}
}

type ticketWatcher struct{ tickets Tickets }

func (w *ticketWatcher) Add(ctx context.Context, site *websitev1.Website) error {
	return w.tickets.Open(ctx, site.Name, "new site at "+site.Spec.Domain)
}

func (w *ticketWatcher) Update(ctx context.Context, previous, site *websitev1.Website) error {
	if previous.Spec.Domain == site.Spec.Domain {
		return nil
	}
	return w.tickets.Open(ctx, site.Name, previous.Spec.Domain+" moves to "+site.Spec.Domain)
}

func (w *ticketWatcher) Delete(ctx context.Context, site *websitev1.Website) error {
	return w.tickets.Close(ctx, site.Name)
}

// endregion

// region events-reconciler
func TicketReconciler(tickets Tickets) operator.Reconciler {
	return &operator.TypedReconciler[*websitev1.Website]{
		ReconcileFunc: func(
			ctx context.Context, req operator.TypedReconcileRequest[*websitev1.Website],
		) (operator.ReconcileResult, error) {
			if req.Action == operator.ReconcileActionDeleted {
				return operator.ReconcileResult{}, tickets.Close(ctx, req.Object.Name)
			}
			err := tickets.Open(ctx, req.Object.Name, string(operator.ResourceActionFromReconcileAction(req.Action)))
			if errors.Is(err, errBusy) {
				return operator.ReconcileResult{RequeueAfter: time.Minute}, nil
			}
			return operator.ReconcileResult{}, err
		},
	}
}

// endregion

// region events-controller
func TicketController(c reconcilers.Config, tickets Tickets) *operator.Controller[*websitev1.Website] {
	return &operator.Controller[*websitev1.Website]{
		Handlers: []reconcilers.SubReconciler[*websitev1.Website]{
			operator.OpinionatedWatcher("demo.trueup.dev/tickets", TicketWatcher(tickets)),
		},
		Config: c,
	}
}

// endregion

// region events-app
var websiteKind = resource.Kind{Schema: resource.NewSimpleSchema(
	"demo.trueup.dev", "v1", &websitev1.Website{}, &websitev1.WebsiteList{},
)}

func NewTicketApp(cluster *rest.Config, tickets Tickets) (*simple.App, error) {
	return simple.NewApp(simple.AppConfig{
		Name:       "tickets",
		KubeConfig: *cluster,
		ManagedKinds: []simple.AppManagedKind{{
			Kind:    websiteKind,
			Watcher: operator.WidenWatcher(TicketWatcher(tickets)),
		}},
	})
}

func runTicketApp(tickets Tickets) error {
	cluster, err := ctrl.GetConfig() // of the kubeconfig, or of the pod
	if err != nil {
		return err
	}
	app, err := NewTicketApp(cluster, tickets) // reports every mistake in the config
	if err != nil {
		return err
	}
	return app.Run(ctrl.SetupSignalHandler())
}

// endregion

func TicketRetries(tickets Tickets) *operator.Opinionated[*websitev1.Website] {
	// region events-retry
	handler := operator.OpinionatedWatcher("demo.trueup.dev/tickets", TicketWatcher(tickets))
	handler.Handler.RetryPolicy = operator.BackoffPolicy{Initial: time.Second, Max: time.Minute, MaxAttempts: 10}.Policy()
	handler.Handler.OnExhausted = func(ctx context.Context, site *websitev1.Website, err error) {
		logging.FromContext(ctx).Error("gave up opening a ticket", "site", site.Name, "error", err)
	}
	// endregion
	return handler
}

// region events-tree
func TicketStep(tickets Tickets) reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.WithFinalizer[*websitev1.Website]{
		Finalizer: "demo.trueup.dev/ticket-step",
		Reconciler: &operator.WithEdge[*websitev1.Website]{
			Finalizers:  []string{"demo.trueup.dev/ticket-step"},
			OnlyChanges: true,
			React:       operator.ReactSpec,
			Reconciler: &reconcilers.SyncReconciler[*websitev1.Website]{
				Sync: func(ctx context.Context, site *websitev1.Website) error {
					text := operator.EdgeFrom(ctx).Action.String()
					if previous, ok := operator.PreviousFrom[*websitev1.Website](ctx); ok {
						text += ", was " + previous.Spec.Domain
					}
					return tickets.Open(ctx, site.Name, text)
				},
				Finalize: func(ctx context.Context, site *websitev1.Website) error { return tickets.Close(ctx, site.Name) },
			},
		},
	}
}

// endregion

// region events-test
func TestTicketWatcher(t *testing.T) {
	site := newSite()
	site.Finalizers = []string{"demo.trueup.dev/tickets"}
	moved := rtesting.With(site, func(site *websitev1.Website) {
		site.Spec.Domain, site.Generation = "bread.example.com", 2
	})
	deleted := rtesting.With(moved, func(site *websitev1.Website) { site.DeletionTimestamp = new(metav1.Unix(2, 0)) })

	tickets := &recordedTickets{}
	opened := func(want ...string) rtesting.VerifyFunc {
		return func(t *testing.T, _ reconcilers.Result, _ error) {
			if diff := cmp.Diff(want, tickets.lines); diff != "" {
				t.Errorf("the tickets (-want +got):\n%s", diff)
			}
			tickets.lines = nil
		}
	}
	rtesting.SubReconcilerTests[*websitev1.Website]{
		"a site that moves": {
			Resource: site,
			Verify:   opened("bakery: new site at bakery.example.com"),
			AdditionalReconciles: []rtesting.SubReconcilerTestCase[*websitev1.Website]{
				{Name: "again", Resource: site, Verify: opened()},
				{Name: "moved", Resource: moved, Verify: opened("bakery: bakery.example.com moves to bread.example.com")},
				{Name: "deleted", Resource: deleted, Verify: opened("bakery: closed")},
			},
		},
	}.Run(t, newScheme(), func(
		*testing.T, *rtesting.SubReconcilerTestCase[*websitev1.Website], reconcilers.Config,
	) reconcilers.SubReconciler[*websitev1.Website] {
		watcher := operator.WatcherReconciler(TicketWatcher(tickets))
		watcher.Finalizers = site.Finalizers
		return watcher
	})
}

// endregion

// recordedTickets records the tickets that are opened and closed.
type recordedTickets struct{ lines []string }

func (t *recordedTickets) Open(_ context.Context, about, text string) error {
	t.lines = append(t.lines, about+": "+text)
	return nil
}

func (t *recordedTickets) Close(_ context.Context, about string) error {
	t.lines = append(t.lines, about+": closed")
	return nil
}

// printedTickets prints the tickets that are opened and closed.
type printedTickets struct{}

func (printedTickets) Open(_ context.Context, about, text string) error {
	fmt.Printf("%s: %s\n", about, text)
	return nil
}

func (printedTickets) Close(_ context.Context, about string) error {
	fmt.Printf("%s: closed\n", about)
	return nil
}

func Example_events() {
	ctx, cluster := context.Background(), newCluster(newSite())
	controllers := []*operator.Controller[*websitev1.Website]{TicketController(cluster, printedTickets{})}
	for _, handler := range []reconcilers.SubReconciler[*websitev1.Website]{
		operator.AsSubReconciler[*websitev1.Website](TicketReconciler(printedTickets{})), TicketStep(printedTickets{}),
	} {
		controllers = append(controllers, &operator.Controller[*websitev1.Website]{
			Handlers: []reconcilers.SubReconciler[*websitev1.Website]{handler}, Config: cluster,
		})
	}
	handle := func() {
		for _, controller := range controllers {
			if _, err := controller.Reconcile(ctx, requestFor(newSite())); err != nil {
				fmt.Println("error:", err)
			}
		}
	}
	handle()

	site := newSite()
	if err := cluster.Get(ctx, requestFor(site).NamespacedName, site); err != nil {
		fmt.Println(err)
	}
	site.Spec.Domain = "bread.example.com"
	site.Generation++
	if err := cluster.Update(ctx, site); err != nil {
		fmt.Println(err)
	}
	handle()

	if err := cluster.Delete(ctx, newSite()); err != nil {
		fmt.Println(err)
	}
	handle()
	handle()
	// Output:
	// event: Normal FinalizerPatched: Patched finalizer "demo.trueup.dev/tickets"
	// bakery: new site at bakery.example.com
	// bakery: CREATE
	// event: Normal FinalizerPatched: Patched finalizer "demo.trueup.dev/ticket-step"
	// bakery: Created
	// event: Normal StatusUpdated: Updated status
	// bakery: bakery.example.com moves to bread.example.com
	// bakery: UPDATE
	// bakery: Updated, was bakery.example.com
	// bakery: closed
	// event: Normal FinalizerPatched: Patched finalizer "demo.trueup.dev/tickets"
	// bakery: UPDATE
	// bakery: closed
	// event: Normal FinalizerPatched: Patched finalizer "demo.trueup.dev/ticket-step"
	// bakery: closed
}

// Does the app of the guide have a valid config?
func TestTicketApp(t *testing.T) {
	if _, err := NewTicketApp(&rest.Config{Host: "http://offline.invalid"}, &recordedTickets{}); err != nil {
		t.Error(err)
	}
	_ = runTicketApp // needs a cluster
}
