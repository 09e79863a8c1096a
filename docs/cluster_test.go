// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"trueup.dev/duck"
	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/reconcilers"
	"trueup.dev/tracker"
)

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, websitev1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}

// newCluster returns the config of a cluster in memory that prints its events.
func newCluster(given ...client.Object) reconcilers.Config {
	scheme := newScheme()
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(given...).WithStatusSubresource(&websitev1.Website{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				obj.SetCreationTimestamp(metav1.NewTime(time.Now())) // as an API server does
				return c.Create(ctx, obj, opts...)
			},
		}).Build()
	return reconcilers.Config{
		Client: duck.NewDuckAwareClientWrapper(c), APIReader: duck.NewDuckAwareAPIReaderWrapper(c, c),
		Recorder: printer{}, Tracker: tracker.New(scheme, time.Hour),
	}
}

// newSite returns a site of one page.
func newSite() *websitev1.Website {
	return &websitev1.Website{
		TypeMeta: metav1.TypeMeta{APIVersion: websitev1.GroupVersion.String(), Kind: "Website"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "bakery", UID: "1", Generation: 1, CreationTimestamp: metav1.Unix(1, 0),
		},
		Spec: websitev1.WebsiteSpec{
			Domain: "bakery.example.com",
			Pages:  []websitev1.Page{{Name: "index", Title: "Fresh every morning"}},
		},
	}
}

// reconcileOnce calls a subreconciler with the site and prints its error. The status is not written.
func reconcileOnce(c reconcilers.Config, r reconcilers.SubReconciler[*websitev1.Website]) {
	root := &reconcilers.ResourceReconciler[*websitev1.Website]{Reconciler: r, SkipStatusUpdate: true, Config: c}
	result, err := root.Reconcile(context.Background(), requestFor(newSite()))
	if err != nil {
		fmt.Println("error:", err)
	}
	if result.RequeueAfter > 0 {
		fmt.Println("again in", result.RequeueAfter)
	}
}

func requestFor(obj client.Object) reconcilers.Request {
	return reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(obj)}
}

// printer prints events.
type printer struct{}

func (printer) Event(_ runtime.Object, eventtype, reason, message string) {
	fmt.Printf("event: %s %s: %s\n", eventtype, reason, message)
}

func (p printer) Eventf(obj runtime.Object, eventtype, reason, format string, args ...any) {
	p.Event(obj, eventtype, reason, fmt.Sprintf(format, args...))
}

func (p printer) AnnotatedEventf(
	obj runtime.Object, _ map[string]string, eventtype, reason, format string, args ...any,
) {
	p.Eventf(obj, eventtype, reason, format, args...)
}
