package app

import (
	"context"
	"encoding/json"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"trueup.dev/app"
	"trueup.dev/resource"
	"trueup.dev/simple"

	v1 "example.com/links/pkg/generated/link/v1"
	v2 "example.com/links/pkg/generated/link/v2"
	"example.com/links/pkg/generated/manifestdata"
	"example.com/links/pkg/watchers"
)

func Provider(appCfg app.SpecificConfig) app.Provider {
	return simple.NewAppProvider(manifestdata.LocalManifest(), appCfg, New)
}

func New(cfg app.Config) (app.App, error) {
	clients := &simple.Clients{}
	store, err := resource.NewTypedStore[*v2.Link](v2.LinkKind(), clients)
	if err != nil {
		return nil, err
	}
	a, err := simple.NewApp(simple.AppConfig{
		Name:       "links",
		KubeConfig: cfg.KubeConfig,
		Clients:    clients,
		// A test starts the program, at ports that are free.
		MetricsBindAddress: "0",
		HealthBindAddress:  "0",
		ManagedKinds: []simple.AppManagedKind{
			{Kind: v1.LinkKind()},
			{
				Kind:      v2.LinkKind(),
				Watcher:   watchers.NewLinkWatcher(store),
				Validator: &simple.Validator{ValidateFunc: validate},
				CustomRoutes: simple.AppCustomRouteHandlers{
					{Method: simple.AppCustomRouteMethodGet, Path: "goto"}: func(
						ctx context.Context, w app.CustomRouteResponseWriter, req *app.CustomRouteRequest,
					) error {
						link, err := store.Get(ctx, resource.Identifier{
							Namespace: req.ResourceIdentifier.Namespace, Name: req.ResourceIdentifier.Name,
						})
						if err != nil {
							return err
						}
						answer := v2.NewGetGotoResponse()
						answer.Target = link.Spec.Target
						return json.NewEncoder(w).Encode(answer)
					},
				},
			},
		},
		Converters: map[schema.GroupKind]simple.Converter{{Group: v2.APIGroup, Kind: "Link"}: Converter{}},
	})
	if err != nil {
		return nil, err
	}
	return a, a.ValidateManifest(cfg.ManifestData)
}

func validate(_ context.Context, req *app.AdmissionRequest) error {
	if link, ok := req.Object.(*v2.Link); ok && link.Spec.Target == "" {
		return errors.New("a link needs a target")
	}
	return nil
}
