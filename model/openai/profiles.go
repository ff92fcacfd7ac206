package openai

// Models of OpenAI that reason (they want the role developer), that see images, and that speak the Responses API alone
// (OpenAI's list of models marks "-pro" and "-codex" ones so; from memory, 2026-11).
var (
	openaiReasons   = []string{"o1", "o3", "o4", "gpt-5"}
	openaiSees      = []string{"gpt-4o", "chatgpt-4o", "gpt-4.1", "gpt-5", "o1", "o3", "o4-mini"}
	openaiResponses = []string{"o1-pro", "o3-pro", "o3-deep-research", "o4-mini-deep-research", "codex-", "computer-use-preview",
		"gpt-5-pro", "gpt-5-codex", "gpt-5.1-codex", "gpt-5.2-pro", "gpt-5.2-codex", "gpt-5.3-codex"}
)

const openaiCached = "prompt_tokens_details.cached_tokens"

// profiles are the known providers. Nothing in the code asks for a provider by its name.
var profiles = []Profile{
	{
		Name: "openai", Hosts: []string{"api.openai.com"},
		Source:    "platform.openai.com/docs/api-reference/chat and /docs/guides/reasoning",
		MaxTokens: "max_completion_tokens", Forced: true, Parallel: true, Strict: true,
		Images: ImagesURL, Sees: openaiSees, Developer: openaiReasons, Responses: openaiResponses,
		Window: []WindowWay{WindowTable}, Count: []CountWay{CountInputTokens}, Cached: openaiCached,
	},
	{
		Name: "azure", Hosts: []string{"openai.azure.com", "cognitiveservices.azure.com", "services.ai.azure.com"},
		Source: "learn.microsoft.com/azure/ai-services/openai/reference (GA version 2024-10-21)",
		Base:   "/openai/deployments/{model}", Deployments: "api-version=2024-10-21", KeyHeader: "api-key",
		// The GA version knows max_tokens alone; a reasoning model's refusal teaches the newer name.
		MaxTokens: "max_tokens", Forced: true, Parallel: true, Strict: true,
		Images: ImagesURL, Sees: openaiSees, Developer: openaiReasons,
		Window: []WindowWay{WindowTable}, Cached: openaiCached,
	},
	{
		Name: "openrouter", Hosts: []string{"openrouter.ai"},
		Source:  "openrouter.ai/docs: API overview, tool calling, reasoning tokens (\"preserving reasoning blocks\")",
		Base:    "/api/v1",
		Headers: map[string]string{"X-Title": "memgpt"},
		// Whether a forced choice is obeyed depends on who serves the model.
		MaxTokens: "max_tokens", Parallel: true,
		Images: ImagesURL, Sees: append([]string{"claude-", "gemini-", "grok-4"}, openaiSees...),
		Window: []WindowWay{WindowModels, WindowTable}, Cached: openaiCached,
		Reasoning: "reasoning_details", ReasoningBack: ReasoningAlways, TellsCost: true,
	},
	{
		Name: "deepseek", Hosts: []string{"api.deepseek.com"},
		Source:    "api-docs.deepseek.com: create-chat-completion, guides/thinking_mode (reasoning of messages with calls must go back, else 400)",
		MaxTokens: "max_tokens", NoForce: true, Parallel: true, // a forced choice is refused while the model thinks, as it does by default
		Window: []WindowWay{WindowTable}, Cached: "prompt_cache_hit_tokens",
		Reasoning: "reasoning_content", ReasoningBack: ReasoningWithCalls,
	},
	{
		Name: "groq", Hosts: []string{"api.groq.com"},
		Source:    "console.groq.com/docs/api-reference",
		Base:      "/openai/v1",
		MaxTokens: "max_completion_tokens", Forced: true, Parallel: true,
		Images: ImagesURL, Sees: []string{"llama-4"},
		Window: []WindowWay{WindowModels, WindowTable}, Cached: openaiCached,
		Reasoning: "reasoning",
	},
	{
		Name: "together", Hosts: []string{"api.together.xyz", "api.together.ai"},
		Source:    "docs.together.ai/reference/chat-completions-1 and /docs/function-calling",
		MaxTokens: "max_tokens", Forced: true, Parallel: true,
		Images: ImagesURL, Sees: []string{"llama-4"},
		Window: []WindowWay{WindowModels, WindowTable}, Cached: "cached_tokens",
		Reasoning: "reasoning",
	},
	{
		Name: "mistral", Hosts: []string{"api.mistral.ai"},
		Source:    "docs.mistral.ai/api (chat), and the refusals 3230 (order of roles) and 3280 (form of ids) as many clients report them",
		MaxTokens: "max_tokens", Required: "any", Forced: true, Parallel: true, NoStreamUsage: true,
		Images: ImagesURL, Sees: []string{"pixtral", "mistral-small", "mistral-medium", "mistral-large"},
		Window: []WindowWay{WindowModels, WindowTable}, Cached: openaiCached,
		Reasoning: "content[].thinking", ShortIDs: true, AfterResult: true, NoEmptyMessages: true,
	},
	{
		Name: "xai", Hosts: []string{"api.x.ai"},
		Source:    "docs.x.ai/docs/api-reference; \"each message must have at least one content element\" as clients report it (2025-11)",
		MaxTokens: "max_completion_tokens", Forced: true, Parallel: true,
		Images: ImagesURL, Sees: []string{"grok-4", "grok-2-vision"},
		Window: []WindowWay{WindowTable}, Cached: openaiCached,
		Reasoning: "reasoning_content", EmptyCallText: true, NoEmptyMessages: true,
	},
	{
		Name: "gemini", Hosts: []string{"generativelanguage.googleapis.com"},
		Source:    "ai.google.dev/gemini-api/docs/openai and /docs/thought-signatures",
		Base:      "/v1beta/openai",
		MaxTokens: "max_tokens", Forced: true, Parallel: true,
		Images: ImagesData, Sees: []string{"gemini-"},
		Window: []WindowWay{WindowTable}, Cached: openaiCached,
		Reasoning: "<think>", CallExtra: `{"google":{"thought_signature":"skip_thought_signature_validator"}}`,
	},
	{
		Name: "vllm", Hosts: []string{":8000"},
		Source:    "docs.vllm.ai: OpenAI-compatible server, tool calling, reasoning outputs (v0.11: reasoning_content became reasoning)",
		MaxTokens: "max_tokens", Forced: true, Parallel: true,
		Images: ImagesURL, Window: []WindowWay{WindowModels, WindowTable}, Count: []CountWay{CountTokenize}, Cached: openaiCached,
		Reasoning: "reasoning",
	},
	{
		Name: "sglang", Hosts: []string{":30000"},
		Source:    "docs.sglang.ai: OpenAI APIs, tool parser, reasoning parser",
		MaxTokens: "max_tokens", Forced: true, Parallel: true,
		Images: ImagesURL, Window: []WindowWay{WindowModels, WindowTable}, Cached: openaiCached,
		Reasoning: "reasoning_content",
	},
	{
		Name: "lmstudio", Hosts: []string{":1234"},
		Source:    "lmstudio.ai/docs/app/api/endpoints/openai and /docs/app/api/tools",
		MaxTokens: "max_tokens", Parallel: true, // "required" depends on the engine
		Images: ImagesData, Window: []WindowWay{WindowStudio, WindowModels, WindowTable}, Cached: openaiCached,
		Reasoning: "reasoning_content",
	},
	{
		Name: "llamacpp", Hosts: []string{":8080"},
		Source:    "github.com/ggml-org/llama.cpp, tools/server/README.md, and recordings of its server b11549 of 2026-11-29",
		MaxTokens: "max_tokens", Parallel: true, // "required" lets text come first, which can use the reply up
		Images: ImagesURL, Window: []WindowWay{WindowModels, WindowProps, WindowTable},
		Count: []CountWay{CountInputTokens, CountTemplate}, Cached: openaiCached,
		Reasoning: "reasoning_content",
	},
	{
		Name: "ollama", Hosts: []string{":11434", "ollama.com"},
		Source:    "docs.ollama.com/api/openai-compatibility",
		MaxTokens: "max_tokens", Parallel: true, // a choice is taken and not enforced
		Images: ImagesData, Window: []WindowWay{WindowModels, WindowOllama, WindowTable}, Cached: openaiCached,
		Reasoning: "reasoning",
	},
}
