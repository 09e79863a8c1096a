// SPDX-License-Identifier: Apache-2.0

package otel_test

import (
	"context"
	"errors"
	"testing"

	opentelemetry "go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/observe/otel"
	"trueup.dev/reconcilers"
)

var errQuota = errors.New("quota exceeded")

func newConfigMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: blog.Namespace, Name: name}}
}

// do returns a step that calls f.
func do(name string, f func(ctx context.Context, c client.Client) error) *step {
	return &step{Name: name, Sync: func(ctx context.Context, _ *corev1.ConfigMap) error {
		return f(ctx, reconcilers.RetrieveConfigOrDie(ctx))
	}}
}

func fails(context.Context, client.Client) error { return errQuota }

func TestIsItTraced(t *testing.T) {
	for name, tt := range map[string]struct {
		reconciler subReconciler
		noOps      bool
		sampler    sdktrace.Sampler
		want       bool
	}{
		"nothing":                        {reconciler: sequence{}},
		"nothing, with the option":       {reconciler: sequence{}, noOps: true, want: true},
		"a write":                        {reconciler: keeper(), want: true},
		"a write that the sampler drops": {reconciler: keeper(), sampler: sdktrace.NeverSample()},
		"a write without a change": {want: true, reconciler: do("Touch", func(ctx context.Context, c client.Client) error {
			return c.Patch(ctx, newConfigMap(blog.Name), client.RawPatch("application/merge-patch+json", []byte("{}")))
		})},
		"an ignored failed write": {want: true, reconciler: do("Create", func(ctx context.Context, c client.Client) error {
			return client.IgnoreAlreadyExists(c.Create(ctx, newConfigMap(blog.Name)))
		})},
		"a dry run": {reconciler: do("Try", func(ctx context.Context, c client.Client) error {
			return c.Create(ctx, newConfigMap("other"), client.DryRunAll)
		})},
		"a read of a missing object": {reconciler: do("Read", func(ctx context.Context, c client.Client) error {
			return client.IgnoreNotFound(c.Get(ctx, client.ObjectKey{Name: "missing"}, &corev1.Secret{}))
		})},
		"an ignored failed read": {want: true, reconciler: do("Read", func(ctx context.Context, c client.Client) error {
			_ = c.Get(ctx, client.ObjectKey{Name: "a"}, &unstructured.Unstructured{})
			return nil
		})},
		"a failed step": {reconciler: do("Quota", fails), want: true},
		"a caught failure": {want: true, reconciler: &reconcilers.TryCatch[*corev1.ConfigMap]{
			Try: do("Quota", fails),
			Catch: func(context.Context, *corev1.ConfigMap, reconcilers.Result, error) (reconcilers.Result, error) {
				return reconcilers.Result{}, nil
			},
		}},
		"a panic": {want: true, reconciler: do("Panic", func(context.Context, client.Client) error { panic("test") })},
		"a halted step": {reconciler: do("Halt", func(context.Context, client.Client) error {
			return errors.Join(reconcilers.ErrQuiet, reconcilers.ErrHaltSubReconcilers)
		})},
		"a requeue": {reconciler: &step{SyncWithResult: func(context.Context, *corev1.ConfigMap) (reconcilers.Result, error) {
			return reconcilers.Result{RequeueAfter: 1}, nil
		}}},
		"attributes of a handler": {reconciler: do("Note", func(ctx context.Context, _ client.Client) error {
			trace.SpanFromContext(ctx).SetAttributes(attribute.Bool("a", true))
			trace.SpanFromContext(ctx).AddEvent("b")
			return nil
		})},
		"an error of a handler": {want: true, reconciler: do("Note", func(ctx context.Context, _ client.Client) error {
			trace.SpanFromContext(ctx).RecordError(errQuota)
			return nil
		})},
		"a status of a handler": {want: true, reconciler: do("Note", func(ctx context.Context, _ client.Client) error {
			trace.SpanFromContext(ctx).SetStatus(codes.Error, "quota exceeded")
			return nil
		})},
		"a reference to the span": {want: true, reconciler: do("Log", func(ctx context.Context, _ client.Client) error {
			if !trace.SpanContextFromContext(ctx).IsValid() {
				return errors.New("the span is not valid")
			}
			return nil
		})},
	} {
		t.Run(name, func(t *testing.T) {
			options := []sdktrace.TracerProviderOption{}
			if tt.sampler != nil {
				options = append(options, sdktrace.WithSampler(tt.sampler))
			}
			provider, exported := newProvider(options...)
			reconcileOnce(t, tt.reconciler, otel.New(provider, otel.Options{NoOps: tt.noOps}))
			spans := exported.GetSpans()
			if got := len(spans) > 0; got != tt.want {
				t.Errorf("traced: %t, want %t; spans:\n%s", got, tt.want, drawing{}.draw(spans))
			}
			for _, s := range spans {
				if s.Parent.IsValid() && !contains(spans, s.Parent) {
					t.Errorf("the parent of %q is missing", s.Name)
				}
			}
		})
	}
}

func TestWhichProviderIsTheDefault(t *testing.T) {
	before := opentelemetry.GetTracerProvider()
	defer opentelemetry.SetTracerProvider(before)
	provider, exported := newProvider()
	opentelemetry.SetTracerProvider(provider)
	reconcileOnce(t, keeper(), otel.New(nil, otel.Options{}))
	if len(exported.GetSpans()) == 0 {
		t.Error("the global provider has no spans")
	}
}

func TestWhichStepFailed(t *testing.T) {
	provider, exported := newProvider()
	reconcileOnce(t, sequence{
		do("Read", func(ctx context.Context, c client.Client) error {
			return client.IgnoreNotFound(c.Get(ctx, client.ObjectKey{Name: "missing"}, &corev1.Secret{}))
		}),
		do("Quota", fails),
	}, otel.New(provider, otel.Options{}))
	expect(t, drawing{keys: []string{"error.type", "exception.message", "trueup.reconcile.result", "trueup.step.outcome"}},
		exported.GetSpans(),
		"reconcile website FAILED quota exceeded trueup.reconcile.result=error error.type=*errors.errorString",
		"  event trueup.cause",
		"  website FAILED quota exceeded trueup.step.outcome=Failed error.type=*errors.errorString",
		"    get ConfigMap",
		"    website.0 trueup.step.outcome=Succeeded",
		"      website.0.Read trueup.step.outcome=Succeeded",
		"        get Secret",
		"    website.1 FAILED quota exceeded trueup.step.outcome=Failed error.type=*errors.errorString",
		"      website.1.Quota FAILED quota exceeded trueup.step.outcome=Failed error.type=*errors.errorString",
		"        event exception exception.message=quota exceeded",
	)
}

func TestWhyWasAWriteRefused(t *testing.T) {
	provider, exported := newProvider()
	reconcileOnce(t, do("Create", func(ctx context.Context, c client.Client) error {
		return c.Create(ctx, newConfigMap(blog.Name))
	}), otel.New(provider, otel.Options{}))
	const message = `configmaps "blog" already exists`
	expect(t, drawing{keys: []string{"error.type", "exception.message"}}, exported.GetSpans(),
		"reconcile website FAILED "+message+" error.type=AlreadyExists",
		"  event trueup.cause",
		"  website FAILED "+message+" error.type=AlreadyExists",
		"    get ConfigMap",
		"    website.Create FAILED "+message+" error.type=AlreadyExists",
		"      create ConfigMap (client) FAILED "+message+" error.type=AlreadyExists",
		"        event exception exception.message="+message,
	)
}

func TestWhatDidItCall(t *testing.T) {
	provider, exported := newProvider()
	reconcileOnce(t, do("All", func(ctx context.Context, c client.Client) error {
		created := newConfigMap("new")
		return errors.Join(
			c.Create(ctx, created),
			c.Get(ctx, client.ObjectKeyFromObject(created), created),
			c.List(ctx, &corev1.ConfigMapList{}),
			c.Patch(ctx, created, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"a":"b"}}`))),
			c.Update(ctx, created),
			c.Apply(ctx, corev1apply.ConfigMap("new", blog.Namespace), client.FieldOwner("test"), client.ForceOwnership),
			c.Delete(ctx, created, client.DryRunAll),
			c.Delete(ctx, created),
			client.IgnoreNotFound(c.Get(ctx, client.ObjectKeyFromObject(created), created)),
			c.DeleteAllOf(ctx, created, client.InNamespace("other")),
			c.SubResource("scale").Update(ctx, &appsv1.Deployment{}),
		)
	}), otel.New(provider, otel.Options{}))
	const gone = `deployments.apps "" not found`
	expect(t, drawing{keys: []string{"k8s.object.kind", "k8s.object.name", "k8s.object.resource_version", "trueup.call."}},
		exported.GetSpans(),
		"reconcile website FAILED "+gone+" kind=ConfigMap name=blog",
		"  event trueup.cause",
		"  website FAILED "+gone,
		"    get ConfigMap kind=ConfigMap name=blog verb=get resource_version=999 cached=true",
		"    website.All FAILED "+gone,
		"      create ConfigMap (client) kind=ConfigMap name=new verb=create resource_version=1 no_op=false",
		"      get ConfigMap kind=ConfigMap name=new verb=get resource_version=1 cached=true",
		"      list ConfigMap kind=ConfigMap verb=list cached=true items=2",
		"      patch ConfigMap (client) kind=ConfigMap name=new verb=patch resource_version=2"+
			" resource_version_before=1 no_op=false",
		"      update ConfigMap (client) kind=ConfigMap name=new verb=update resource_version=3"+
			" resource_version_before=2 no_op=false",
		"      apply ConfigMap (client) kind=ConfigMap name=new verb=patch resource_version=4"+
			" resource_version_before=3 apply=true no_op=false",
		"      delete ConfigMap (client) kind=ConfigMap name=new verb=delete resource_version_before=4"+
			" dry_run=true no_op=false",
		"      delete ConfigMap (client) kind=ConfigMap name=new verb=delete resource_version_before=4 no_op=false",
		"      get ConfigMap kind=ConfigMap name=new verb=get cached=true found=false",
		"      deletecollection ConfigMap (client) kind=ConfigMap verb=deletecollection no_op=false",
		"      update Deployment/scale (client) FAILED "+gone+" kind=Deployment verb=update subresource=scale no_op=false",
		"        event exception",
	)
}
