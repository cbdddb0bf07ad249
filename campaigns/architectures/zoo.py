"""Architectures of transformers, timm and diffusers, and modules with attention.

They are small and have random weights. Nothing is downloaded. A row has a configuration and the
inputs of one call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

_TEXT = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "vocab_size": 99,
    "max_position_embeddings": 64,
}
_GPT = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
_HEADS = {"num_key_value_heads": 2}
_VISION = {**_TEXT, "image_size": 32, "patch_size": 8}
_STAGES = {"depths": [1, 1, 1, 1], "hidden_sizes": [8, 16, 24, 32], "image_size": 64}
_SOUND = {
    **_TEXT,
    "conv_dim": [16, 16, 16],
    "conv_stride": [5, 2, 2],
    "conv_kernel": [10, 3, 3],
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
}
_BLOCKS = {"sample_size": 16, "block_out_channels": (16, 32), "norm_num_groups": 4}


@dataclass(frozen=True, slots=True)
class Architecture:
    """An architecture.

    Attributes:
        library: "transformers", "timm", "diffusers", or "attention" for modules of `attentions`.
        maker: the configuration's or the model's class, timm's name, or the module's.
        inputs: a name of `INPUTS`; a module with attention has its own.
        options: of the configuration.
    """

    library: str
    maker: str
    inputs: str
    options: Mapping[str, Any] = field(default_factory=dict)


def _text(maker: str, **options: Any) -> Architecture:
    return Architecture("transformers", f"{maker}Config", "text", {**_TEXT, **options})


def _image(maker: str, **options: Any) -> Architecture:
    return Architecture("transformers", f"{maker}Config", "image", options)


def _sound(maker: str) -> Architecture:
    return Architecture("transformers", f"{maker}Config", "sound", _SOUND)


ARCHITECTURES: Mapping[str, Architecture] = {
    "albert": _text("Albert", embedding_size=16),
    "bert": _text("Bert"),
    "bloom": _text("Bloom", n_layer=2, n_head=4),
    "cohere": _text("Cohere", **_HEADS),
    "convbert": _text("ConvBert", embedding_size=32),
    "deberta_v2": _text("DebertaV2", relative_attention=True, position_buckets=16),
    "distilbert": _text("DistilBert", dim=32, n_layers=2, n_heads=4, hidden_dim=64),
    "electra": _text("Electra", embedding_size=32),
    "falcon": _text("Falcon"),
    "fnet": _text("FNet"),
    "gemma": _text("Gemma", **_HEADS, head_dim=8),
    "gemma2": _text("Gemma2", **_HEADS, head_dim=8),
    "gpt2": _text("GPT2", **_GPT),
    "gpt_neo": _text(
        "GPTNeo", num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]]
    ),
    "gpt_neox": _text("GPTNeoX"),
    "gptj": _text("GPTJ", **_GPT, rotary_dim=4),
    "llama": _text("Llama", **_HEADS),
    "mamba": _text("Mamba", state_size=4),
    "mistral": _text("Mistral", **_HEADS),
    "mobilebert": _text(
        "MobileBert", embedding_size=32, intra_bottleneck_size=32, true_hidden_size=32
    ),
    "modernbert": _text("ModernBert", pad_token_id=0),
    "mpnet": _text("MPNet"),
    "olmo": _text("Olmo", **_HEADS),
    "opt": _text("OPT", ffn_dim=64, word_embed_proj_dim=32),
    "phi": _text("Phi", num_key_value_heads=4),
    "phi3": _text("Phi3", **_HEADS, pad_token_id=0),
    "qwen2": _text("Qwen2", **_HEADS),
    "qwen3": _text("Qwen3", **_HEADS, head_dim=8),
    "roberta": _text("Roberta"),
    "roformer": _text("RoFormer", embedding_size=32),
    "squeezebert": _text("SqueezeBert", embedding_size=32),
    "stablelm": _text("StableLm", **_HEADS),
    "xlm_roberta": _text("XLMRoberta"),
    "beit": _image("Beit", **_VISION, use_relative_position_bias=True),
    "convnext": _image("ConvNext", **_STAGES),
    "convnextv2": _image("ConvNextV2", **_STAGES),
    "deit": _image("DeiT", **_VISION),
    "dinov2": _image("Dinov2", **_VISION),
    "levit": _image(
        "Levit",
        image_size=64,
        hidden_sizes=[16, 24, 32],
        num_attention_heads=[2, 2, 2],
        depths=[1, 1, 1],
        key_dim=[8, 8, 8],
    ),
    "mobilevit": _image(
        "MobileViT",
        image_size=64,
        hidden_sizes=[16, 24, 32],
        neck_hidden_sizes=[8, 8, 12, 16, 16, 16, 32],
    ),
    "regnet": _image("RegNet", **_STAGES, embedding_size=8, groups_width=4),
    "resnet": _image("ResNet", **_STAGES, embedding_size=8),
    "segformer": _image(
        "Segformer", **_STAGES, num_attention_heads=[1, 2, 3, 4], decoder_hidden_size=16
    ),
    "swin": _image(
        "Swin",
        embed_dim=16,
        depths=[1, 1],
        num_heads=[2, 4],
        image_size=32,
        patch_size=4,
        window_size=4,
    ),
    "vit": _image("ViT", **_VISION),
    "hubert": _sound("Hubert"),
    "wav2vec2": _sound("Wav2Vec2"),
    "wavlm": _sound("WavLM"),
    "ast": Architecture(
        "transformers",
        "ASTConfig",
        "spectrogram",
        {
            **_TEXT,
            "patch_size": 8,
            "frequency_stride": 8,
            "time_stride": 8,
            "max_length": 64,
            "num_mel_bins": 16,
        },
    ),
    **{
        f"timm_{name}": Architecture("timm", name, "picture")
        for name in (
            "edgenext_xx_small",
            "efficientnet_b0",
            "fastvit_t8",
            "ghostnet_050",
            "lcnet_050",
            "mixer_s32_224",
            "mobilenetv3_small_050",
            "mobilenetv4_conv_small",
            "regnetx_002",
            "resnet18",
            "tinynet_e",
            "vit_tiny_patch16_224",
        )
    },
    **{
        f"attention_{name}": Architecture("attention", name, "own")
        for name in (
            *("alibi", "biased", "capped", "causal", "cosine", "cross", "decoder", "encoder"),
            *("extended", "fused", "grouped", "image", "llama", "multi_query", "own", "padded"),
            *("rotated", "standard", "tril", "weights", "whisper", "window"),
        )
    },
    "unet2d": Architecture(
        "diffusers",
        "UNet2DModel",
        "noise",
        {
            **_BLOCKS,
            "layers_per_block": 1,
            "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
            "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
            "attention_head_dim": 8,
        },
    ),
    "unet2d_condition": Architecture(
        "diffusers",
        "UNet2DConditionModel",
        "prompted noise",
        {
            **_BLOCKS,
            "layers_per_block": 1,
            "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
            "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
            "cross_attention_dim": 32,
            "attention_head_dim": 4,
        },
    ),
    "vae": Architecture(
        "diffusers",
        "AutoencoderKL",
        "latent",
        {
            **_BLOCKS,
            "down_block_types": ("DownEncoderBlock2D",) * 2,
            "up_block_types": ("UpDecoderBlock2D",) * 2,
            "latent_channels": 4,
        },
    ),
}

#: The inputs of a call: made of a function of sizes that gives random numbers, and of PyTorch.
INPUTS: Mapping[str, Callable[[Any, Any, int], tuple[Any, ...]]] = {
    "text": lambda torch, draw, size: (torch.arange(7)[None] * 13 % 99,),
    "image": lambda torch, draw, size: (draw(1, 3, size, size),),
    "picture": lambda torch, draw, size: (draw(1, 3, 224, 224),),
    "sound": lambda torch, draw, size: (draw(1, 800),),
    "spectrogram": lambda torch, draw, size: (draw(1, 64, 16),),
    "noise": lambda torch, draw, size: (draw(1, 3, 16, 16), torch.tensor([3])),
    "prompted noise": lambda torch, draw, size: (
        draw(1, 4, 16, 16),
        torch.tensor([3]),
        draw(1, 5, 32),
    ),
    "latent": lambda torch, draw, size: (draw(1, 3, 16, 16),),
}
