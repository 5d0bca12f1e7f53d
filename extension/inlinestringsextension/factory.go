package inlinestringsextension

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"
)

// Config has no keys: the extension does one thing.
type Config struct{}

// NewFactory returns the factory of the extension.
func NewFactory() extension.Factory {
	return extension.NewFactory(
		component.MustNewType("inline_strings"),
		func() component.Config { return &Config{} },
		func(context.Context, extension.Settings, component.Config) (extension.Extension, error) {
			return &middleware{}, nil
		},
		component.StabilityLevelAlpha,
	)
}
