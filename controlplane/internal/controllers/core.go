// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"time"

	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apiextensionsscheme "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/scheme"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	genericfeatures "k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/dynamic"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/bootstrap"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/resourcequota"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/controller/storageversiongc"
	"k8s.io/kubernetes/pkg/controller/storageversionmigrator"
	"k8s.io/kubernetes/pkg/controller/validatingadmissionpolicystatus"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/generated/openapi"
	quotainstall "k8s.io/kubernetes/pkg/quota/v1/install"
	"k8s.io/utils/clock"
)

// quotaDiscoveryPeriod is how often the quota controller checks for new kinds, as in kube-controller-manager.
const quotaDiscoveryPeriod = 30 * time.Second

// core are the controllers that work for all kinds, and the controllers of access control.
var core = []descriptor{
	{
		name: names.GarbageCollectorController, alias: "garbagecollector",
		client: "generic-garbage-collector", build: newCollector,
	},
	{
		name: names.BootstrapSignerController, alias: "bootstrapsigner", optional: true,
		client: "bootstrap-signer", build: newBootstrapSigner,
	},
	{
		name: names.ClusterRoleAggregationController, alias: "clusterrole-aggregation",
		client: "clusterrole-aggregation-controller", build: newRoleAggregation,
	},
	{
		name: names.LegacyServiceAccountTokenCleanerController, alias: "legacy-service-account-token-cleaner",
		client: "legacy-service-account-token-cleaner", build: newLegacyTokenCleaner,
	},
	{name: names.NamespaceController, alias: "namespace", client: "namespace-controller", build: newNamespaces},
	{name: names.ResourceQuotaController, alias: "resourcequota", client: "resourcequota-controller", build: newQuotas},
	{
		name: names.ServiceAccountController, alias: "serviceaccount",
		client: "service-account-controller", build: newServiceAccounts,
	},
	{
		name: names.ServiceAccountTokenController, alias: "serviceaccount-token",
		client: "tokens-controller", build: newTokens,
	},
	{
		name: names.StorageVersionGarbageCollectorController, alias: "storage-version-gc",
		client: "storage-version-garbage-collector",
		gates:  []featuregate.Feature{genericfeatures.APIServerIdentity, genericfeatures.StorageVersionAPI},
		build:  newStorageVersionCollector,
	},
	{
		name: names.StorageVersionMigratorController, alias: "svm", client: names.StorageVersionMigratorController,
		build: newStorageVersionMigrator,
	},
	{
		name: names.TokenCleanerController, alias: "tokencleaner", optional: true,
		client: "token-cleaner", build: newTokenCleaner,
	},
	{
		name:   names.ValidatingAdmissionPolicyStatusController,
		client: names.ValidatingAdmissionPolicyStatusController, build: newPolicyStatus,
	},
}

func newBootstrapSigner(_ context.Context, s setup) (runFunc, error) {
	v1 := s.informers.Core().V1()
	c, err := bootstrap.NewSigner(s.client, v1.Secrets(), v1.ConfigMaps(), bootstrap.DefaultSignerOptions())
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

func newTokenCleaner(_ context.Context, s setup) (runFunc, error) {
	c, err := bootstrap.NewTokenCleaner(
		s.client, s.informers.Core().V1().Secrets(), bootstrap.DefaultTokenCleanerOptions(),
	)
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

func newRoleAggregation(_ context.Context, s setup) (runFunc, error) {
	const workers = 5
	c := clusterroleaggregation.NewClusterRoleAggregation(s.informers.Rbac().V1().ClusterRoles(), s.client.RbacV1())
	return withWorkers(c.Run, workers), nil
}

func newLegacyTokenCleaner(_ context.Context, s setup) (runFunc, error) {
	v1 := s.informers.Core().V1()
	c, err := serviceaccount.NewLegacySATokenCleaner(v1.ServiceAccounts(), v1.Secrets(), v1.Pods(), s.client,
		clock.RealClock{}, serviceaccount.LegacySATokenCleanerOptions{
			CleanUpPeriod: s.settings.LegacySATokenCleaner.CleanUpPeriod.Duration,
			SyncInterval:  serviceaccount.DefaultCleanerSyncInterval,
		})
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

func newQuotas(ctx context.Context, s setup) (runFunc, error) {
	quotas, err := quotainstall.NewQuotaConfigurationForControllers(
		generic.ListerFuncForResourceFunc(s.informers.ForResource), s.informers,
	)
	if err != nil {
		return nil, err
	}
	discover := s.client.Discovery().ServerPreferredNamespacedResources
	settings := s.settings.ResourceQuotaController
	c, err := resourcequota.NewController(ctx, &resourcequota.ControllerOptions{
		QuotaClient:               s.client.CoreV1(),
		ResourceQuotaInformer:     s.informers.Core().V1().ResourceQuotas(),
		ResyncPeriod:              controller.StaticResyncPeriodFunc(settings.ResourceQuotaSyncPeriod.Duration),
		InformerFactory:           s.kinds,
		ReplenishmentResyncPeriod: controller.StaticResyncPeriodFunc(s.settings.Generic.MinResyncPeriod.Duration),
		DiscoveryFunc:             discover,
		IgnoredResourcesFunc:      quotas.IgnoredResources,
		InformersStarted:          s.started,
		Registry:                  generic.NewRegistry(quotas.Evaluators()),
		UpdateFilter:              quotainstall.DefaultUpdateFilter(),
	})
	if err != nil {
		return nil, err
	}
	return concurrently(
		withWorkers(c.Run, settings.ConcurrentResourceQuotaSyncs),
		func(ctx context.Context) { c.Sync(ctx, discover, quotaDiscoveryPeriod) },
	), nil
}

func newServiceAccounts(ctx context.Context, s setup) (runFunc, error) {
	v1 := s.informers.Core().V1()
	c, err := serviceaccount.NewServiceAccountsController(klog.FromContext(ctx), v1.ServiceAccounts(), v1.Namespaces(),
		s.client, serviceaccount.DefaultServiceAccountsControllerOptions())
	if err != nil {
		return nil, err
	}
	return withWorkers(c.Run, 1), nil
}

func newStorageVersionCollector(ctx context.Context, s setup) (runFunc, error) {
	c := storageversiongc.NewStorageVersionGC(ctx, s.client, s.informers.Coordination().V1().Leases(),
		s.informers.Internal().V1alpha1().StorageVersions())
	return c.Run, nil
}

// newStorageVersionMigrator rewrites stored objects. It reads them from the graph of the garbage collector.
func newStorageVersionMigrator(ctx context.Context, s setup) (runFunc, error) {
	gates := clientfeatures.FeatureGates()
	if s.gc == nil || !utilfeature.DefaultFeatureGate.Enabled(features.StorageVersionMigrator) ||
		!gates.Enabled(clientfeatures.InformerResourceVersion) || !gates.Enabled(clientfeatures.InOrderInformers) {
		return nil, nil
	}
	crds, err := apiextensionsclient.NewForConfig(s.config)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(s.config)
	if err != nil {
		return nil, err
	}
	meta, err := metadata.NewForConfig(s.config)
	if err != nil {
		return nil, err
	}
	migrations := s.informers.Storagemigration().V1().StorageVersionMigrations()
	return concurrently(
		storageversionmigrator.NewSVMController(
			ctx, s.client, objects, migrations, s.name, s.mapper, s.gc.graph).Run,
		storageversionmigrator.NewResourceVersionController(
			ctx, s.client, s.client.Discovery(), meta, migrations, s.mapper).Run,
		storageversionmigrator.NewCustomResourceController(
			ctx, s.client, migrations, crds.ApiextensionsV1().CustomResourceDefinitions()).Run,
	), nil
}

func newPolicyStatus(_ context.Context, s setup) (runFunc, error) {
	schemas := resolver.NewDefinitionsSchemaResolver(
		openapi.GetOpenAPIDefinitions, scheme.Scheme, apiextensionsscheme.Scheme,
	).Combine(&resolver.ClientDiscoveryResolver{Discovery: s.client.Discovery()})
	c, err := validatingadmissionpolicystatus.NewController(
		s.informers.Admissionregistration().V1().ValidatingAdmissionPolicies(),
		s.client.AdmissionregistrationV1().ValidatingAdmissionPolicies(),
		&validating.TypeChecker{SchemaResolver: schemas, RestMapper: s.mapper},
	)
	if err != nil {
		return nil, err
	}
	return withWorkers(c.Run, s.settings.ValidatingAdmissionPolicyStatusController.ConcurrentPolicySyncs), nil
}
