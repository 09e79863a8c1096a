// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/app"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
	"trueup.dev/simple"
)

func ExampleNewApp() {
	made, err := simple.NewApp(simple.AppConfig{
		Name:       "widgets",
		KubeConfig: *ctrl.GetConfigOrDie(),
		ManagedKinds: []simple.AppManagedKind{{
			Kind: widgetKind,
			Watcher: &simple.Watcher{
				AddFunc: func(_ context.Context, object resource.Object) error {
					fmt.Println("there is", object.GetName())
					return nil
				},
				DeleteFunc: func(_ context.Context, object resource.Object) error {
					fmt.Println("clean up after", object.GetName())
					return nil
				},
			},
		}},
		UnmanagedKinds: []simple.AppUnmanagedKind{{
			Kind: configMapKind,
			Reconciler: &simple.Reconciler{
				ReconcileFunc: func(_ context.Context, req operator.ReconcileRequest) (operator.ReconcileResult, error) {
					fmt.Println(req.Action, req.Object.GetName())
					return operator.ReconcileResult{}, nil
				},
			},
			ReconcileOptions: simple.ReconcileOptions{LabelFilters: []string{"widgets=settings"}},
		}},
	})
	if err != nil {
		panic(err)
	}
	if err := made.Run(ctrl.SetupSignalHandler()); err != nil {
		panic(err)
	}
}

func ExampleNewApp_mistakes() {
	_, err := simple.NewApp(simple.AppConfig{
		Name: "widgets",
		ManagedKinds: []simple.AppManagedKind{
			{Kind: widgetKind, Watcher: &simple.Watcher{}, Reconciler: &simple.Reconciler{}},
			{Kind: widgetKind},
		},
	})
	fmt.Println(err)
	// Output:
	// invalid config of app "widgets":
	// ManagedKinds[1].Kind is Widget.v1.simple.example.com, which is a duplicate of ManagedKinds[0]
	// ManagedKinds[0].Watcher and .Reconciler are both set
}

// Use a tree of reconcilers as the handler of a kind.
func ExampleAppManagedKind() {
	_ = simple.AppManagedKind{
		Kind: widgetKind,
		SubReconciler: operator.Widen(reconcilers.Sequence[*Widget]{
			&reconcilers.SyncReconciler[*Widget]{Sync: func(_ context.Context, widget *Widget) error {
				widget.Status.Applied = widget.Spec.Title
				return nil
			}},
		}),
	}
}

func ExampleClients() {
	clients := &simple.Clients{}
	store, err := resource.NewTypedStore[*Widget](widgetKind, clients)
	if err != nil {
		panic(err)
	}
	reconciler := &operator.TypedReconciler[*Widget]{
		ReconcileFunc: func(
			ctx context.Context, req operator.TypedReconcileRequest[*Widget],
		) (operator.ReconcileResult, error) {
			req.Object.Status.Applied = req.Object.Spec.Title
			_, err := store.UpdateSubresource(
				ctx, req.Object.GetStaticMetadata().Identifier(), resource.SubresourceStatus, req.Object,
			)
			return operator.ReconcileResult{}, err
		},
	}
	_, err = simple.NewApp(simple.AppConfig{
		Name:         "widgets",
		KubeConfig:   *ctrl.GetConfigOrDie(),
		Clients:      clients,
		ManagedKinds: []simple.AppManagedKind{{Kind: widgetKind, Reconciler: reconciler}},
	})
	if err != nil {
		panic(err)
	}
}

func ExampleMutator() {
	mutator := &simple.Mutator{MutateFunc: func(
		_ context.Context, req *app.AdmissionRequest,
	) (*app.MutatingResponse, error) {
		widget := req.Object.(*Widget)
		widget.Spec.Title = strings.TrimSpace(widget.Spec.Title)
		return &app.MutatingResponse{UpdatedObject: widget}, nil
	}}
	response, err := mutator.Mutate(context.Background(), &app.AdmissionRequest{
		Action: app.AdmissionActionCreate, Object: newWidget("it", " hello "),
	})
	fmt.Printf("%q, %v\n", response.UpdatedObject.(*Widget).Spec.Title, err)
	// Output:
	// "hello", <nil>
}

func ExampleValidator() {
	validator := &simple.Validator{ValidateFunc: func(_ context.Context, req *app.AdmissionRequest) error {
		if req.Action != app.AdmissionActionDelete && req.Object.(*Widget).Spec.Title == "" {
			return errors.New("a widget needs a title")
		}
		return nil
	}}
	fmt.Println(
		validator.Validate(context.Background(), &app.AdmissionRequest{
			Action: app.AdmissionActionCreate, Object: newWidget("it", ""),
		}),
	)
	// Output:
	// a widget needs a title
}

func ExampleHubConverter() {
	_ = simple.AppConfig{
		Converters: map[schema.GroupKind]simple.Converter{
			gadgetV2.GroupKind(): &simple.HubConverter[*GadgetV2]{
				Hub: gadgetV2,
				// GadgetV1 has the methods ConvertTo(*GadgetV2) error and ConvertFrom(*GadgetV2) error.
				Spokes: []simple.Spoke[*GadgetV2]{{Kind: gadgetV1}},
			},
		},
	}
}

// A converter renames a field in the JSON of an object.
func ExampleConverterFunc() {
	converter := simple.ConverterFunc(func(obj simple.RawKind, targetAPIVersion string) ([]byte, error) {
		var content map[string]any
		if err := json.Unmarshal(obj.Raw, &content); err != nil {
			return nil, err
		}
		old, renamed := "title", "name"
		if obj.Version == "v2" {
			old, renamed = renamed, old
		}
		content[renamed] = content[old]
		delete(content, old)
		content["apiVersion"] = targetAPIVersion
		return json.Marshal(content)
	})
	converted, err := converter.Convert(simple.RawKind{
		Kind: "Book", APIVersion: "example.com/v1", Group: "example.com", Version: "v1",
		Raw: []byte(`{"apiVersion":"example.com/v1","kind":"Book","title":"Emma"}`),
	}, "example.com/v2")
	fmt.Printf("%s %v\n", converted, err)
	// Output:
	// {"apiVersion":"example.com/v2","kind":"Book","name":"Emma"} <nil>
}

func ExampleCheckRoundTrip() {
	gadget := &GadgetV1{ObjectMeta: metav1.ObjectMeta{Name: "it"}, Spec: GadgetV1Spec{Name: "Ada Lovelace"}}
	fmt.Println(simple.CheckRoundTrip(gadgets(), gadgetV1, gadget, "simple.example.com/v2"))
	// Output:
	// <nil>
}

func ExampleApp_WebhookConfigurations() {
	config := simple.AppConfig{
		Name:         "widgets",
		KubeConfig:   *ctrl.GetConfigOrDie(),
		ManagedKinds: []simple.AppManagedKind{{Kind: widgetKind, Validator: &simple.Validator{}}},
	}
	config.Webhooks.CertDir = "/certificates"
	made, err := simple.NewApp(config)
	if err != nil {
		panic(err)
	}
	_, validating := made.WebhookConfigurations(admissionregistrationv1.WebhookClientConfig{
		Service: &admissionregistrationv1.ServiceReference{Namespace: "widgets", Name: "widgets"},
	})
	validating.Annotations = map[string]string{"cert-manager.io/inject-ca-from": "widgets/certificate"}
	if err := made.Manager().GetClient().Create(context.Background(), validating); err != nil {
		panic(err)
	}
}

func ExampleNewAppProvider() {
	manifest := app.ManifestData{AppName: "widgets", Group: "simple.example.com"}
	provider := simple.NewAppProvider(manifest, nil, func(config app.Config) (app.App, error) {
		return simple.NewApp(simple.AppConfig{
			Name:         config.ManifestData.AppName,
			KubeConfig:   config.KubeConfig,
			ManagedKinds: []simple.AppManagedKind{{Kind: widgetKind, Watcher: &simple.Watcher{}}},
		})
	})
	runner, err := operator.NewRunner(operator.RunnerConfig{KubeConfig: *ctrl.GetConfigOrDie()})
	if err != nil {
		panic(err)
	}
	if err := runner.Run(ctrl.SetupSignalHandler(), provider); err != nil {
		panic(err)
	}
}
