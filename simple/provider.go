// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"errors"

	"trueup.dev/app"
)

var _ app.Provider = (*AppProvider)(nil)

// AppProvider is an [app.Provider] that returns fixed values.
type AppProvider struct {
	manifest       app.ManifestData
	specificConfig app.SpecificConfig
	newApp         func(config app.Config) (app.App, error)
}

// NewAppProvider returns a provider. The specific config is passed to newApp as part of its config; it may be nil. An
// operator.Runner runs the app that newApp returns.
func NewAppProvider(
	manifest app.ManifestData, specificConfig app.SpecificConfig, newApp func(config app.Config) (app.App, error),
) *AppProvider {
	return &AppProvider{manifest: manifest, specificConfig: specificConfig, newApp: newApp}
}

// Manifest implements [app.Provider].
func (p *AppProvider) Manifest() app.ManifestData { return p.manifest }

// SpecificConfig implements [app.Provider].
func (p *AppProvider) SpecificConfig() app.SpecificConfig { return p.specificConfig }

// NewApp implements [app.Provider].
func (p *AppProvider) NewApp(config app.Config) (app.App, error) {
	if p.newApp == nil {
		return nil, errors.New("NewAppProvider must have a function that makes the app")
	}
	return p.newApp(config)
}
