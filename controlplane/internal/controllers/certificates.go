// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	certificateinformers "k8s.io/client-go/informers/certificates/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/certificates/approver"
	"k8s.io/kubernetes/pkg/controller/certificates/cleaner"
	"k8s.io/kubernetes/pkg/controller/certificates/clustertrustbundlepublisher"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
	"k8s.io/kubernetes/pkg/controller/certificates/signer"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/utils/clock"
)

const (
	certificateWorkers = 5 // as in kube-controller-manager

	// age at which pod certificate requests are removed, and how often that is checked, as in kube-controller-manager
	podRequestAge    = 15 * time.Minute
	podRequestPeriod = 5 * time.Minute
)

// certificates are the controllers that issue and publish certificates.
var certificates = []descriptor{
	{
		name: names.CertificateSigningRequestApprovingController, alias: "csrapproving",
		client: "certificate-controller", build: newRequestApprover,
	},
	{
		name: names.CertificateSigningRequestCleanerController, alias: "csrcleaner",
		client: "certificate-controller", build: newRequestCleaner,
	},
	{
		name: names.CertificateSigningRequestSigningController, alias: "csrsigning",
		client: "certificate-controller", build: newRequestSigner,
	},
	{
		name:   names.KubeAPIServerClusterTrustBundlePublisherController,
		client: "kube-apiserver-serving-clustertrustbundle-publisher",
		gates:  []featuregate.Feature{features.ClusterTrustBundle}, build: newTrustBundlePublisher,
	},
	{
		name: names.PodCertificateRequestCleanerController, client: "podcertificaterequestcleaner",
		gates: []featuregate.Feature{features.PodCertificateRequest}, build: newPodRequestCleaner,
	},
	{
		name: names.RootCACertificatePublisherController, alias: "root-ca-cert-publisher",
		client: "root-ca-cert-publisher", build: newRootCAPublisher,
	},
}

func newRequestApprover(ctx context.Context, s setup) (runFunc, error) {
	c := approver.NewCSRApprovingController(ctx, s.client, s.informers.Certificates().V1().CertificateSigningRequests())
	return withWorkers(c.Run, certificateWorkers), nil
}

func newRequestCleaner(_ context.Context, s setup) (runFunc, error) {
	c := cleaner.NewCSRCleanerController(s.client.CertificatesV1().CertificateSigningRequests(),
		s.informers.Certificates().V1().CertificateSigningRequests())
	return withWorkers(c.Run, 1), nil
}

// newRequestSigner issues approved requests of Kubernetes' signers with the cluster's authority.
func newRequestSigner(ctx context.Context, s setup) (runFunc, error) {
	constructors := []func(
		context.Context, kubernetes.Interface, certificateinformers.CertificateSigningRequestInformer,
		string, string, time.Duration,
	) (*signer.CSRSigningController, error){
		signer.NewKubeletServingCSRSigningController,
		signer.NewKubeletClientCSRSigningController,
		signer.NewKubeAPIServerClientCSRSigningController,
		signer.NewLegacyUnknownCSRSigningController,
	}
	var signers []runFunc
	for _, construct := range constructors {
		c, err := construct(ctx, s.client, s.informers.Certificates().V1().CertificateSigningRequests(),
			s.files.CACertificate, s.files.CAKey, s.settings.CSRSigningController.ClusterSigningDuration.Duration)
		if err != nil {
			return nil, err
		}
		signers = append(signers, withWorkers(c.Run, certificateWorkers))
	}
	return concurrently(signers...), nil
}

func newTrustBundlePublisher(_ context.Context, s setup) (runFunc, error) {
	rootCA, err := os.ReadFile(s.files.CACertificate)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	content, err := dynamiccertificates.NewStaticCAContent("kube-apiserver-serving", rootCA)
	if err != nil {
		return nil, err
	}
	c, err := clustertrustbundlepublisher.NewGAClusterTrustBundlePublisher(
		"kubernetes.io/kube-apiserver-serving", content, s.client,
	)
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

func newPodRequestCleaner(_ context.Context, s setup) (runFunc, error) {
	c := cleaner.NewPCRCleanerController(s.client, s.informers.Certificates().V1().PodCertificateRequests(),
		clock.RealClock{}, podRequestAge, podRequestPeriod)
	return withWorkers(c.Run, 1), nil
}

func newRootCAPublisher(_ context.Context, s setup) (runFunc, error) {
	rootCA, err := os.ReadFile(s.files.CACertificate)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	core := s.informers.Core().V1()
	c, err := rootcacertpublisher.NewPublisher(core.ConfigMaps(), core.Namespaces(), s.client, rootCA)
	if err != nil {
		return nil, err
	}
	return withWorkers(c.Run, 1), nil
}
